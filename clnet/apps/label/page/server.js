// Requests to MONAI Label's server. Each returns data or throws an error with a readable message.

const ROOT = new URL("../", import.meta.url);
const TOKEN = "clnet-token";
const TOKEN_IN_ADDRESS = "#token=";
const LONGEST_TEXT = 400;
const MIN_SCORE = 0.05; // of the findings to request; the page's slider hides more of them

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Server {
  // signIn(server, message) resolves when the user has signed in.
  constructor(signIn) {
    this.signIn = signIn;
    this.signingIn = null;
  }

  pairs() {
    return this.json("clnet/pairs");
  }

  pair(id, signal) {
    return this.json(pairPath(id), { signal });
  }

  findings(id, signal) {
    return this.json(pairPath(id, "findings") + `?min_score=${MIN_SCORE}`, { signal });
  }

  async pixels(id, view, rows, signal) {
    const answer = await this.ask(pairPath(id, view, "pixels") + `?rows=${rows}`, { signal });
    const size = ["X-Rows", "X-Columns"].map((name) => Number(answer.headers.get(name)));
    const values = new Uint16Array(await answer.arrayBuffer());
    if (values.length !== size[0] * size[1]) {
      throw new ServerError(
        200,
        `The ${view.toUpperCase()} view has ${values.length} pixels instead of ${size.join(" × ")}.`,
      );
    }
    return { rows: size[0], columns: size[1], values };
  }

  save(id, label) {
    const headers = { "Content-Type": "application/json" };
    return this.ask(pairPath(id, "label"), { method: "PUT", headers, body: JSON.stringify(label) });
  }

  removeLabel(id) {
    return this.ask(pairPath(id, "label"), { method: "DELETE" });
  }

  info() {
    return this.json("info/");
  }

  nextSample(strategy) {
    return this.json(`activelearning/${encodeURIComponent(strategy)}`, { method: "POST" });
  }

  // Gets a token for a name and a password.
  async fetchToken(username, password) {
    const body = new URLSearchParams({ username, password, grant_type: "password" });
    const answer = await reach("auth/token", { method: "POST", body });
    if (!answer.ok) throw new ServerError(answer.status, await wordsOf(answer));
    const { access_token: token } = await answer.json();
    this.keepToken(token);
  }

  // The address that the server prints when it starts ends in its token; a reload or a bookmark should not.
  takeTokenFromAddress() {
    if (!location.hash.startsWith(TOKEN_IN_ADDRESS)) return;
    this.keepToken(decodeURIComponent(location.hash.slice(TOKEN_IN_ADDRESS.length)));
    history.replaceState(null, "", location.pathname);
  }

  keepToken(token) {
    sessionStorage.setItem(TOKEN, token);
  }

  async json(path, options) {
    return (await this.ask(path, options)).json();
  }

  async ask(path, options = {}) {
    for (;;) {
      const token = sessionStorage.getItem(TOKEN);
      const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
      const answer = await reach(path, { ...options, headers });
      if (answer.ok) return answer;
      const words = await wordsOf(answer);
      if (answer.status !== 401) throw new ServerError(answer.status, words);
      // Several requests may wait for the same sign-in, or return after it.
      if (token === sessionStorage.getItem(TOKEN)) {
        this.signingIn ??= this.signIn(this, token ? words : "").finally(() => (this.signingIn = null));
        await this.signingIn;
      }
    }
  }
}

function pairPath(id, ...rest) {
  return ["clnet", "pairs", id, ...rest].map(encodeURIComponent).join("/");
}

async function reach(path, options) {
  try {
    return await fetch(new URL(path, ROOT), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The server does not answer. Is it still running?");
  }
}

async function wordsOf(answer) {
  const text = await answer.text();
  try {
    const { detail } = JSON.parse(text);
    if (typeof detail === "string") return detail;
    if (Array.isArray(detail)) return detail.map(({ loc, msg }) => `${loc.join(".")}: ${msg}`).join("; ");
  } catch {
    // Not JSON: show the text itself.
  }
  return text.slice(0, LONGEST_TEXT) || `The server answered ${answer.status}.`;
}
