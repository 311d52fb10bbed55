"use strict";
// Files, folders, addresses and pasted texts on their way: each has a line with its progress. Without this file, forms do the same.

(() => {
  const upload = document.getElementById("upload");
  if (!upload) return;
  const AT_ONCE = 6;
  const LOOK_MS = 1000;
  const ASKED_TOGETHER = 100;
  const NAMES_TOGETHER = 500;
  const most = Number(upload.dataset.most);
  const large = Number(upload.dataset.large);
  const token = upload.elements.form_token.value;
  const drop = document.getElementById("drop");
  const queue = document.getElementById("queue");
  const lines = document.getElementById("lines");
  const failures = document.getElementById("failures");
  const tally = document.getElementById("tally");
  const total = document.getElementById("total");
  const entries = new Set();
  const waiting = [];
  const indexing = new Map();
  let sending = 0;
  let paused = 0;

  const sized = (bytes) => {
    if (bytes < 1e3) return `${bytes} bytes`;
    return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  };
  const count = (number, name) => `${number.toLocaleString("en")} ${name}${number === 1 ? "" : "s"}`;
  // Names of files may hold marks that turn or hide others.
  const plain = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`);
  const made = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text) element.textContent = text;
    return element;
  };
  const button = (text, label, action) => {
    const element = made("button", "quiet", text);
    element.type = "button";
    if (label) element.setAttribute("aria-label", label);
    element.addEventListener("click", action);
    return element;
  };

  // ---- One line of the list

  class Entry {
    constructor(kind, name, size, send) {
      Object.assign(this, { kind, name: plain(name), size, send, step: "queued", request: null, job: "" });
      this.item = made("li", "addition");
      this.title = made("div", "name", size === null ? this.name : `${this.name} (${sized(size)})`);
      this.state = made("span", "state", "Queued");
      this.progress = made("progress");
      this.progress.max = 1;
      this.progress.value = 0;
      this.progress.hidden = true;
      this.progress.setAttribute("aria-label", `Progress of ${this.name}`);
      this.actions = made("span", "actions");
      const step = made("div", "step");
      step.append(this.progress, this.state, this.actions);
      this.item.append(this.title, step);
      lines.append(this.item);
      entries.add(this);
      this.offer(["Cancel", () => this.cancel()]);
    }

    offer(...actions) {
      this.actions.replaceChildren(...actions.map(([text, act]) => button(text, `${text} ${this.name}`, act)));
    }

    show(step, text, className) {
      this.step = step;
      this.state.textContent = text;
      this.state.className = `state ${className || ""}`;
      this.progress.hidden = step !== "uploading";
      later();
    }

    explain(...parts) {
      this.why?.remove();
      this.why = null;
      if (!parts.length) return;
      this.why = made("p", "why");
      this.why.append(...parts);
      this.item.append(this.why);
    }

    dismiss() {
      const near = this.item.nextElementSibling || this.item.previousElementSibling;
      const focused = this.item.contains(document.activeElement);
      entries.delete(this);
      this.item.remove();
      if (focused) (near ? near.querySelector("button, a") : null)?.focus();
      later();
    }

    fail(...why) {
      this.show("failed", "Failed", "bad");
      this.item.classList.add("failed");
      this.explain(...why);
      const again = this.send ? [["Try again", () => this.again()]] : [];
      this.offer(...again, ["Dismiss", () => this.dismiss()]);
      failures.append(this.item);
    }

    again() {
      this.item.classList.remove("failed");
      this.explain();
      this.job = "";
      lines.append(this.item);
      this.show("queued", "Queued");
      this.offer(["Cancel", () => this.cancel()]);
      waiting.push(this);
      next();
    }

    cancelled() {
      this.show("cancelled", "Cancelled");
      this.offer(["Dismiss", () => this.dismiss()]);
    }

    async cancel() {
      if (this.step === "queued") {
        const place = waiting.indexOf(this);
        if (place >= 0) waiting.splice(place, 1);
        this.cancelled();
      } else if (this.request) {
        // Bytes that arrived whole have a job, whose id is in the answer: that is cancelled instead of the request.
        if (this.sent) this.stop = true;
        else this.request.abort();
        this.show(this.step, "Cancelling");
      } else if (this.job && !["searchable", "failed", "cancelled"].includes(this.step)) {
        this.show(this.step, "Cancelling");
        const form = new FormData();
        form.set("form_token", token);
        try {
          const answer = await fetch(`/add/jobs/${this.job}/cancel`, { method: "POST", body: form, headers: { Accept: "application/json" } });
          if (!answer.ok) throw new Error(String(answer.status));
        } catch {
          this.show(this.step, "Could not be cancelled");
        }
      }
    }

    follow(job) {
      this.job = job;
      indexing.set(job, this);
      this.show("received", "Waiting to be read");
      if (this.stop) this.cancel();
      look();
    }

    told(found) {
      const [document_] = found.documents;
      if (["queued", "running"].includes(found.step)) {
        if (this.state.textContent === "Cancelling") return;
        if (found.step === "queued") this.show("received", "Waiting to be read");
        else this.show("extracting", "Extracting and indexing", "busy-dot");
        return;
      }
      indexing.delete(this.job);
      if (found.step === "cancelled") {
        this.cancelled();
        return;
      }
      if (document_?.document_id) {
        const link = made("a", "", this.name);
        link.href = `/documents/${document_.document_id}`;
        this.title.replaceChildren(link, this.size === null ? "" : ` (${sized(this.size)})`);
      }
      if (document_?.step === "searchable") {
        this.show("searchable", "Searchable", "good");
        this.explain(made("span", "muted small", [count(document_.chunks, "chunk"), ...document_.warnings].join(". ")));
        this.offer(["Dismiss", () => this.dismiss()]);
        return;
      }
      const failure = document_?.failure || { reason: "failed", explanation: "", detail: "", repair: "Try it again." };
      const reason = made("strong", "", failure.reason);
      const repair = made("span", "repair", `What to do: ${failure.repair}`);
      this.fail(reason, failure.explanation ? `: ${failure.explanation}. ` : ". ", made("span", "detail", failure.detail), repair);
    }
  }

  // ---- Sending

  const reason = (request) => {
    if (!request.status) return "The service cannot be reached; try again when it is back.";
    const page = new DOMParser().parseFromString(request.responseText, "text/html");
    const detail = page.querySelector(".problem .detail, #refusal");
    return detail ? detail.textContent.trim() : `The service answered with status ${request.status}.`;
  };

  const next = () => {
    while (sending < AT_ONCE && waiting.length && !paused) post(waiting.shift());
  };

  const post = (entry) => {
    const [path, form] = entry.send();
    form.set("form_token", token);
    const request = new XMLHttpRequest();
    sending += 1;
    entry.request = request;
    entry.sent = entry.stop = false;
    request.open("POST", path);
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("X-Form-Token", token);
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) entry.progress.value = event.loaded / event.total;
    };
    request.upload.onload = () => {
      entry.sent = entry.kind !== "url";
      if (!entry.stop) entry.show("uploading", entry.kind === "url" ? "Fetching" : "Received");
    };
    request.onabort = () => entry.cancelled();
    request.onloadend = () => {
      sending -= 1;
      entry.request = null;
      if (entry.step === "cancelled") {
        // Its line says so.
      } else if (request.status === 200) {
        entry.follow(JSON.parse(request.responseText).job);
      } else if ([429, 503].includes(request.status) && request.getResponseHeader("Retry-After")) {
        // The service asks to slow down: the file waits, and others with it.
        entry.show("queued", "Waiting for the service");
        waiting.unshift(entry);
        paused += 1;
        setTimeout(() => {
          paused -= 1;
          next();
        }, 1000 * Math.min(30, Number(request.getResponseHeader("Retry-After")) || 2));
      } else entry.fail(reason(request));
      next();
    };
    entry.show("uploading", entry.kind === "url" ? "Fetching" : "Uploading");
    entry.offer(["Cancel", () => entry.cancel()]);
    request.send(form);
  };

  // ---- What became of what was sent

  let looking = 0;
  const look = () => {
    if (!looking && indexing.size) looking = setTimeout(asked, LOOK_MS);
  };

  const asked = async () => {
    const ids = [...indexing.keys()].slice(0, ASKED_TOGETHER);
    let pause = LOOK_MS;
    try {
      const answer = await fetch(`/add/states?${ids.map((id) => `job=${encodeURIComponent(id)}`).join("&")}`);
      if (answer.status === 401) throw new Error("Sign in again in another tab to see how it goes on.");
      if (!answer.ok) throw new Error("The service does not answer at the moment.");
      const states = new Map((await answer.json()).jobs.map((each) => [each.job, each]));
      for (const id of ids) {
        const entry = indexing.get(id);
        if (!entry) continue;
        // Those that others come before are asked for again last.
        indexing.delete(id);
        indexing.set(id, entry);
        if (states.has(id)) entry.told(states.get(id));
        else {
          indexing.delete(id);
          entry.fail("The service does not know it any more; look for it among the documents.");
        }
      }
      trouble("");
      if (indexing.size > ASKED_TOGETHER) pause = LOOK_MS / 5;
    } catch (error) {
      trouble(error instanceof TypeError ? "The service cannot be reached." : error.message);
      pause = 5 * LOOK_MS;
    }
    looking = 0;
    if (indexing.size) looking = setTimeout(asked, pause);
  };

  const trouble = (text) => {
    const line = document.getElementById("trouble-adding");
    line.textContent = text;
    line.hidden = !text;
  };

  // ---- The line above all others

  let due = 0;
  const later = () => {
    if (!due) due = setTimeout(shown, 150);
  };
  const shown = () => {
    due = 0;
    const steps = { searchable: 0, failed: 0, cancelled: 0 };
    for (const entry of entries) if (entry.step in steps) steps[entry.step] += 1;
    const done = steps.searchable + steps.failed + steps.cancelled;
    queue.hidden = !entries.size;
    const told = [`${steps.searchable.toLocaleString("en")} of ${entries.size.toLocaleString("en")} searchable`];
    if (entries.size > done) told.push(`${(entries.size - done).toLocaleString("en")} on their way`);
    if (steps.failed) told.push(`${steps.failed.toLocaleString("en")} failed`);
    if (steps.cancelled) told.push(`${steps.cancelled.toLocaleString("en")} cancelled`);
    tally.textContent = told.join(", ");
    total.max = entries.size || 1;
    total.value = done;
    const actions = { "cancel-all": entries.size > done, "retry-failed": [...entries].some((each) => each.step === "failed" && each.send), "dismiss-failed": steps.failed, "dismiss-done": steps.searchable + steps.cancelled };
    for (const [id, offered] of Object.entries(actions)) document.getElementById(id).hidden = !offered;
    document.getElementById("failures-head").hidden = !steps.failed;
  };
  const each = (steps, act) => {
    for (const entry of [...entries]) if (steps.includes(entry.step)) act(entry);
  };
  document.getElementById("cancel-all").addEventListener("click", () => {
    // First those that would take the place of the others.
    each(["queued"], (entry) => entry.cancel());
    each(["uploading", "received", "extracting"], (entry) => entry.cancel());
  });
  document.getElementById("retry-failed").addEventListener("click", () => each(["failed"], (entry) => entry.send && entry.again()));
  document.getElementById("dismiss-failed").addEventListener("click", () => each(["failed"], (entry) => entry.dismiss()));
  document.getElementById("dismiss-done").addEventListener("click", () => each(["searchable", "cancelled"], (entry) => entry.dismiss()));
  window.addEventListener("beforeunload", (event) => {
    if (sending || waiting.length) event.preventDefault();
  });

  // ---- Questions before anything is sent

  const target = (form) => {
    const values = {};
    for (const name of ["namespace", "visibility"]) values[name] = form.elements[name].value;
    return values;
  };

  const known = async (names, where) => {
    const found = new Set();
    for (let start = 0; start < names.length; start += NAMES_TOGETHER) {
      const form = new FormData();
      for (const [name, value] of Object.entries(where)) form.set(name, value);
      form.set("names", JSON.stringify(names.slice(start, start + NAMES_TOGETHER)));
      const answer = await fetch("/add/known", { method: "POST", body: form, headers: { "X-Form-Token": token } });
      if (!answer.ok) throw new Error(reason({ status: answer.status, responseText: await answer.text() }));
      for (const name of (await answer.json()).known) found.add(name);
    }
    return found;
  };

  const dialog = document.getElementById("ask");
  const choices = (id, files, told) => {
    const group = document.getElementById(id);
    const list = group.querySelector("ul");
    group.hidden = !files.length;
    group.querySelector("legend").textContent = told;
    list.replaceChildren(...files.map((file) => {
      const box = made("input");
      box.type = "checkbox";
      box.checked = true;
      box.file = file;
      const label = made("label");
      label.append(box, made("span", "", `${plain(file.name)} (${sized(file.size)})`));
      const item = made("li");
      item.append(label);
      return item;
    }));
    group.querySelector(".all").hidden = files.length < 2;
    return () => new Set([...list.querySelectorAll("input:not(:checked)")].map((box) => box.file));
  };
  for (const group of dialog.querySelectorAll("fieldset")) {
    for (const all of group.querySelectorAll("button[value]")) {
      all.addEventListener("click", () => {
        for (const box of group.querySelectorAll("input")) box.checked = all.value === "yes";
      });
    }
  }
  // Returns the files that are left out; null if nothing is to be sent.
  const answered = (there, heavy) => new Promise((resolve) => {
    const kept = choices("ask-known", there, `${count(there.length, "document")} of this name ${there.length === 1 ? "is" : "are"} there already`);
    const light = choices("ask-large", heavy, `${count(heavy.length, "file")} larger than ${sized(large)}`);
    dialog.returnValue = "";
    dialog.onclose = () => resolve(dialog.returnValue === "send" ? new Set([...kept(), ...light()]) : null);
    dialog.showModal();
  });

  let turn = Promise.resolve();
  const add = (files, hidden = 0) => {
    turn = turn.then(() => taken(files, hidden)).catch((error) => trouble(error.message));
    return turn;
  };
  const taken = async (files, hidden) => {
    const leftOut = document.getElementById("left-out");
    leftOut.textContent = hidden ? `${count(hidden, "hidden file")} of the folder ${hidden === 1 ? "was" : "were"} left out.` : "";
    leftOut.hidden = !hidden;
    const where = target(upload);
    const describe = upload.elements.describe?.checked;
    const fitting = [];
    for (const file of files) {
      if (file.size <= most) fitting.push(file);
      else new Entry("file", file.name, file.size, null).fail(`A document may have ${sized(most)}. Divide it, or put it into a source.`);
    }
    const there = await known(fitting.map((file) => file.name), where);
    const asks = [fitting.filter((file) => there.has(file.name)), fitting.filter((file) => file.size > large)];
    const out = asks[0].length + asks[1].length ? await answered(...asks) : new Set();
    if (!out) return;
    for (const file of fitting) {
      if (out.has(file)) continue;
      waiting.push(new Entry("file", file.name, file.size, () => {
        const form = new FormData();
        for (const [name, value] of Object.entries(where)) form.set(name, value);
        form.set("name", file.name);
        if (describe) form.set("describe", "on");
        form.set("file", file.content, file.content.name);
        return ["/add/files", form];
      }));
    }
    next();
  };

  // ---- Files, folders, and what is dropped

  const isHidden = (path) => path.split("/").some((part) => part.startsWith(".")) || /(^|\/)(Thumbs\.db|desktop\.ini)$/i.test(path);
  const picked = (list) => {
    const files = [...list].map((file) => ({ name: file.webkitRelativePath || file.name, size: file.size, content: file }));
    const shownOnes = files.filter((file) => !file.content.webkitRelativePath || !isHidden(file.name));
    return add(shownOnes, files.length - shownOnes.length);
  };
  for (const id of ["file", "folder"]) {
    const field = document.getElementById(id);
    field.addEventListener("change", () => {
      picked(field.files);
      field.value = "";
    });
  }
  upload.addEventListener("submit", (event) => event.preventDefault());

  const listed = (reader) => new Promise((resolve, reject) => reader.readEntries(resolve, reject));
  const opened = (entry) => new Promise((resolve, reject) => entry.file(resolve, reject));
  async function* walk(entry) {
    if (entry.isFile) {
      yield [entry.fullPath.replace(/^\//, ""), entry];
      return;
    }
    const reader = entry.createReader();
    // A folder is listed in parts, the last of which is empty.
    for (let part = await listed(reader); part.length; part = await listed(reader)) {
      for (const inner of part) yield* walk(inner);
    }
  }
  const dropped = async (roots, loose) => {
    const files = loose.map((file) => ({ name: file.name, size: file.size, content: file }));
    let hidden = 0;
    for (const root of roots) {
      for await (const [path, entry] of walk(root)) {
        if (root.isDirectory && isHidden(path)) {
          hidden += 1;
          continue;
        }
        try {
          const content = await opened(entry);
          files.push({ name: path, size: content.size, content });
        } catch (error) {
          new Entry("file", path, null, null).fail(`The browser cannot read it: ${error.message}`);
        }
      }
    }
    await add(files, hidden);
  };
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  drop.addEventListener("dragleave", (event) => {
    if (!drop.contains(event.relatedTarget)) drop.classList.remove("over");
  });
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    // Entries can be asked for during this event alone.
    const roots = [];
    const loose = [];
    for (const item of event.dataTransfer.items) {
      if (item.kind !== "file") continue;
      const entry = item.webkitGetAsEntry?.();
      if (entry) roots.push(entry);
      else if (item.getAsFile()) loose.push(item.getAsFile());
    }
    dropped(roots, loose).catch((error) => trouble(`The folder cannot be read: ${error.message}`));
  });
  // A file that misses the zone would replace the page.
  for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());

  // ---- Addresses and pasted texts

  const intercept = (form, kind, nameOf) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const content = new FormData(form);
      waiting.push(new Entry(kind, nameOf(form), null, () => [form.getAttribute("action"), content]));
      form.querySelector("[data-clear]").value = "";
      hint();
      next();
    });
  };
  intercept(document.getElementById("import"), "url", (form) => form.elements.url.value.trim());
  intercept(document.getElementById("pasting"), "text", (form) => form.elements.name.value.trim());

  const address = document.getElementById("address");
  const hint = () => {
    const told = document.getElementById("address-kind");
    let place = null;
    try {
      place = new URL(address.value.trim());
    } catch {
      // Not yet an address.
    }
    told.textContent = kindOf(place);
    told.classList.toggle("video", told.textContent.startsWith("YouTube"));
  };
  const kindOf = (place) => {
    if (!place || !/^https?:$/.test(place.protocol)) return "";
    const host = place.hostname.replace(/^(www|m|music)\./, "");
    if (host === "youtu.be") return "YouTube video: its captions are imported.";
    if (!["youtube.com", "youtube-nocookie.com"].includes(host)) return "Web page";
    if (place.searchParams.get("v") || /^\/(shorts|live|embed|v)\//.test(place.pathname)) return "YouTube video: its captions are imported.";
    return "YouTube, but no single video: give the address of one.";
  };
  address.addEventListener("input", hint);
  document.documentElement.classList.add("scripted");
  shown();
})();
