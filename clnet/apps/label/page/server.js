// What is asked of MONAI Label's server. Each answer is data, or an error that says in words what went wrong.

const ROOT = new URL("../", import.meta.url);
const TOKEN = "clnet-token";
const LONGEST_TEXT = 400;
const LEAST_SCORE = 0.05; // of findings to ask for; the page shows those from its slider on

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Server {
  // signIn(server, message) promises that somebody has signed in.
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
    return this.json(pairPath(id, "findings") + `?min_score=${LEAST_SCORE}`, { signal });
  }

  async pixels(id, view, rows, signal) {
    const answer = await this.ask(pairPath(id, view, "pixels") + `?rows=${rows}`, { signal });
    const size = ["X-Rows", "X-Columns"].map((name) => Number(answer.headers.get(name)));
    const values = new Uint16Array(await answer.arrayBuffer());
    if (values.length !== size[0] * size[1]) {
      throw new ServerError(
        200,
        `The ${view.toUpperCase()} view came with ${values.length} pixels, not ${size.join(" × ")}.`,
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

  // By name and password, or with a token that somebody has already.
  async fetchToken(username, password) {
    const body = new URLSearchParams({ username, password, grant_type: "password" });
    const answer = await reach("auth/token", { method: "POST", body });
    if (!answer.ok) throw new ServerError(answer.status, await wordsOf(answer));
    const { access_token: token } = await answer.json();
    this.keepToken(token);
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
      // Several questions may wait for one sign-in, or come back after it.
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
    // Not JSON: the text itself is all there is.
  }
  return text.slice(0, LONGEST_TEXT) || `The server answered ${answer.status}.`;
}
