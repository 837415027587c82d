// The sign-in dialog, for servers that require it: name and password, or a token.

export function signIn(server, message) {
  const dialog = byId("sign-in");
  const form = dialog.querySelector("form");
  const error = byId("sign-in-error");
  error.textContent = message;
  dialog.oncancel = (event) => event.preventDefault(); // without signing in there is nothing to show
  dialog.showModal();
  return new Promise((signedIn) => {
    form.onsubmit = async (event) => {
      event.preventDefault();
      const { username, password, token } = Object.fromEntries(new FormData(form));
      try {
        if (token) server.keepToken(token.trim());
        else await server.fetchToken(username, password);
      } catch (refusal) {
        error.textContent = `Check name and password. The server says: ${refusal.message}`;
        return;
      }
      form.reset();
      dialog.close();
      signedIn();
    };
  });
}
