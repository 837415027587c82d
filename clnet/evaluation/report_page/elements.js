"use strict";
// How elements are made. Text only ever becomes a text node, so nothing in the data can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

function readJson(id) {
  return JSON.parse(byId(id).textContent);
}

const number = (value) => value.toLocaleString("en");
const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
const percent = (share) => (100 * share).toFixed(1);
const rateName = (rate) => String(rate);
const spoken = (name) => name.replaceAll("_", " ");

// A score in few digits; systems that write logits have large ones.
function scoreText(score) {
  return Math.abs(score) >= 10 ? score.toFixed(1) : score.toFixed(2);
}
