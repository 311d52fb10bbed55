"use strict";
// Chats as they are answered. Without this file the form sends the question, and the page comes back with the answer.

const chat = document.getElementById("chat");
if (chat) {
  const turns = document.getElementById("turns");
  const told = document.getElementById("told");
  const field = document.getElementById("question");
  const send = document.getElementById("send");
  const stop = document.getElementById("stop");
  let running = null;

  const made = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text) element.textContent = text;
    return element;
  };
  // What the service renders, in which every text is escaped.
  const rendered = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  };
  const headers = { "X-Form-Token": chat.elements.form_token.value, "HX-Request": "true" };
  const refusal = async (response) => {
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const detail = page.querySelector(".problem .detail, #refusal");
    if (response.status === 401) return "You are signed out; load the page again, and sign in.";
    return detail ? detail.textContent : `The service answered with status ${response.status}.`;
  };

  // Objects in JSON, one a line, as they arrive.
  const lines = async function* (response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      held += value;
      const whole = held.split("\n");
      held = whole.pop();
      for (const line of whole) yield JSON.parse(line);
    }
  };

  const alerted = (article, text) => {
    const line = made("div", "alert problem");
    line.setAttribute("role", "alert");
    line.append(made("p", "detail", text));
    article.append(line);
  };

  const follow = (change) => {
    const near = window.innerHeight + window.scrollY > document.body.scrollHeight - 160;
    change();
    if (near) window.scrollTo({ top: document.body.scrollHeight, behavior: "instant" });
  };

  const busy = (controller) => {
    running = controller;
    send.hidden = controller !== null;
    stop.hidden = controller === null;
  };

  const ask = async () => {
    const form = new FormData(chat);
    const article = made("article", "turn");
    const question = made("h2", "question", field.value.trim());
    question.prepend(made("span", "unseen", "You asked: "));
    const answer = made("div", "answer");
    const waiting = made("p", "muted", "Searching the documents …");
    article.append(question, answer, waiting);
    article.setAttribute("aria-busy", "true");
    document.getElementById("begin")?.remove();
    document.getElementById("new").hidden = false;
    document.querySelector("main > .problem")?.remove();
    turns.append(article);
    article.scrollIntoView({ block: "start" });
    told.textContent = "The question is being answered.";
    const controller = new AbortController();
    busy(controller);
    let done = false;
    try {
      const response = await fetch("/ask/stream", { method: "POST", body: form, headers, signal: controller.signal });
      if (!response.ok) throw new Error(await refusal(response));
      field.value = "";
      for await (const line of lines(response)) {
        if (line.sources !== undefined) waiting.replaceChildren(rendered(line.sources));
        if (line.blocks !== undefined) {
          follow(() => {
            waiting.remove();
            while (answer.children.length > line.keep) answer.lastElementChild.remove();
            answer.append(rendered(line.blocks));
          });
        }
        if (line.error !== undefined) throw new Error(line.error);
        if (line.turn !== undefined) {
          done = true;
          chat.elements.turns.value = line.turns;
          follow(() => article.replaceWith(rendered(line.turn)));
          told.textContent = "The answer is complete.";
          field.placeholder = "Ask further";
        }
      }
      if (!done) throw new Error("The service broke off its answer; ask again.");
    } catch (error) {
      const stopped = controller.signal.aborted;
      waiting.remove();
      if (stopped) {
        article.append(made("p", "muted", "Stopped. Further questions go without this one."));
        told.textContent = "Stopped.";
      } else {
        alerted(article, error instanceof TypeError ? "The service cannot be reached; ask again when it is back." : error.message);
        told.textContent = "";
      }
      // What was asked can be asked again.
      if (!field.value) field.value = form.get("question");
    } finally {
      article.removeAttribute("aria-busy");
      busy(null);
      field.focus({ preventScroll: true });
    }
  };

  const judge = async (button) => {
    const group = button.closest(".verdicts");
    const form = new FormData(chat);
    form.set("judge", button.value);
    try {
      const response = await fetch("/ask/judgement", { method: "POST", body: form, headers });
      if (!response.ok) throw new Error(await refusal(response));
      const answered = await response.json();
      chat.elements.turns.value = answered.turns;
      group.replaceWith(rendered(answered.verdicts));
      document.getElementById(button.id)?.focus();
    } catch (error) {
      alerted(group.closest(".turn"), error instanceof TypeError ? "The service cannot be reached." : error.message);
    }
  };

  chat.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter && event.submitter.name === "judge") judge(event.submitter);
    else if (running === null) ask();
  });
  stop.addEventListener("click", () => running?.abort());
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (running === null) chat.requestSubmit(send);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") running?.abort();
  });
  // A number leads to its source, also where it stands among those that are folded away.
  turns.addEventListener("click", (event) => {
    const cite = event.target.closest("a.cite");
    const source = cite && document.getElementById(cite.hash.slice(1));
    if (!source) return;
    source.closest("details")?.setAttribute("open", "");
    event.preventDefault();
    source.scrollIntoView({ block: "center" });
    source.focus({ preventScroll: true });
  });
  window.addEventListener("pagehide", () => running?.abort());
}
