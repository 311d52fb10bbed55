"use strict";
// Selected documents are counted, and a page of them is selected at once. Without this file, each is selected by itself.

(() => {
  document.documentElement.classList.add("scripted");
  const boxes = () => [...document.querySelectorAll("input[name=id][form=selected]")];
  const tell = () => {
    const line = document.getElementById("selected-count");
    if (!line) return;
    const chosen = boxes().filter((box) => box.checked).length;
    line.textContent = chosen ? `${chosen} selected` : "";
    const all = document.getElementById("pick-all");
    all.checked = chosen > 0 && chosen === boxes().length;
    all.indeterminate = chosen > 0 && !all.checked;
  };
  document.addEventListener("change", (event) => {
    if (event.target.id === "pick-all") for (const box of boxes()) box.checked = event.target.checked;
    if (event.target.closest("#list")) tell();
  });
})();
