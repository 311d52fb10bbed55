"use strict";
// Everything works without this file; it makes some of it quicker.

// Choosing an order or page of a list in place would lose the position of the reader, so links stay links. `/` leads to the
// field for searches, as people know it from other pages.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const field = document.querySelector("input[type=search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// What could not be loaded is said where it would stand, until something is.
const trouble = (event, told) => {
  const place = event.detail.target;
  if (!place || document.getElementById("trouble")) return;
  const line = document.createElement("p");
  line.id = "trouble";
  line.className = "alert";
  line.setAttribute("role", "alert");
  line.textContent = told;
  place.before(line);
};
document.addEventListener("htmx:sendError", (event) => trouble(event, "The service cannot be reached; what you see is not up to date."));
document.addEventListener("htmx:responseError", (event) => {
  const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
  const detail = page.querySelector(".problem .detail");
  trouble(event, detail ? detail.textContent : `The service answered with status ${event.detail.xhr.status}.`);
});
document.addEventListener("htmx:afterSwap", () => document.getElementById("trouble")?.remove());

// A form that takes long says so, and is not sent twice.
for (const form of document.querySelectorAll("form[data-busy]")) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button");
    button.disabled = true;
    button.textContent = form.dataset.busy;
  });
}

const upload = document.getElementById("upload");
if (upload) {
  // Files on their way at a time, from the first byte until they are searchable: each asks for its state every second.
  const AT_ONCE = 8;
  const field = document.getElementById("file");
  const drop = document.getElementById("drop");
  const queue = document.getElementById("queue");
  const waiting = [];
  const indexing = new Set();
  let sending = 0;

  const sized = (bytes) => (bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
  const made = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text) element.textContent = text;
    return element;
  };

  // One line of the queue: the name of a file, its state, and a button that cancels or dismisses it.
  const line = (file) => {
    const list = made("ul", "additions");
    const item = made("li", "addition");
    const state = made("span", "state", "Queued");
    const progress = made("progress", "unseen");
    const button = made("button", "quiet", "Cancel");
    button.type = "button";
    button.setAttribute("aria-label", `Cancel ${file.name}`);
    progress.max = 1;
    progress.value = 0;
    progress.setAttribute("aria-label", `Progress of ${file.name}`);
    const step = made("div", "step");
    step.append(progress, state, button);
    item.append(made("div", "name", `${file.name} (${sized(file.size)})`), step);
    list.append(item);
    queue.append(list);
    return { file, list, item, state, progress, button };
  };

  const failed = (entry, why) => {
    entry.item.classList.add("failed");
    entry.state.className = "state bad";
    entry.state.textContent = "Failed";
    entry.progress.remove();
    entry.item.append(made("p", "why", why));
    entry.button.textContent = "Dismiss";
    entry.button.setAttribute("aria-label", `Dismiss ${entry.file.name}`);
    entry.button.onclick = () => entry.list.remove();
  };

  const reason = (request) => {
    if (!request.status) return "The service cannot be reached; try again when it is back.";
    const page = new DOMParser().parseFromString(request.responseText, "text/html");
    const detail = page.querySelector(".problem .detail, #refusal");
    return detail ? detail.textContent : `The service answered with status ${request.status}.`;
  };

  const next = () => {
    while (sending < AT_ONCE && waiting.length) send(waiting.shift());
  };

  const send = (entry) => {
    sending += 1;
    const form = new FormData();
    for (const name of ["namespace", "visibility"]) form.set(name, upload.elements[name].value);
    form.set("file", entry.file);
    const request = new XMLHttpRequest();
    request.open("POST", upload.action);
    request.setRequestHeader("HX-Request", "true");
    request.setRequestHeader("X-Form-Token", upload.elements.form_token.value);
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) entry.progress.value = event.loaded / event.total;
    };
    request.upload.onload = () => { entry.state.textContent = "Received"; };
    request.onloadend = () => {
      if (request.status === 200 && !entry.cancelled) {
        const part = new DOMParser().parseFromString(request.responseText, "text/html").body.firstElementChild;
        entry.list.replaceWith(part);
        htmx.process(part);
        if (part.hasAttribute("hx-get")) {
          indexing.add(part.id);
          return;
        }
      } else if (!entry.cancelled) failed(entry, reason(request));
      sending -= 1;
      next();
    };
    entry.progress.classList.remove("unseen");
    entry.state.textContent = "Uploading";
    entry.button.onclick = () => {
      entry.cancelled = true;
      request.abort();
      entry.list.remove();
    };
    request.send(form);
  };

  const add = (files) => {
    for (const file of files) {
      const entry = line(file);
      if (file.size > Number(upload.dataset.most)) {
        failed(entry, `A document may have ${sized(Number(upload.dataset.most))}; divide it, or put it into a source.`);
        continue;
      }
      if (file.size > Number(upload.dataset.large)) entry.item.append(made("p", "muted small", "Large documents take a while to index."));
      entry.button.onclick = () => {
        waiting.splice(waiting.indexOf(entry), 1);
        entry.list.remove();
      };
      waiting.push(entry);
    }
    next();
  };

  document.addEventListener("htmx:afterSwap", () => {
    for (const id of indexing) {
      const part = document.getElementById(id);
      if (part && part.hasAttribute("hx-get")) continue;
      indexing.delete(id);
      sending -= 1;
    }
    next();
  });
  document.documentElement.classList.add("scripted");
  field.addEventListener("change", () => {
    add([...field.files]);
    field.value = "";
  });
  upload.addEventListener("submit", (event) => event.preventDefault());
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });
  // A file that misses the zone would replace the page.
  for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
}
