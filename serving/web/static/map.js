"use strict";
// The map: points on a canvas. Its clusters and chosen areas are lists of the page, which need none of this.

const frame = document.querySelector(".map");
if (frame) {
  document.documentElement.classList.add("scripted");
  const canvas = document.getElementById("map");
  const paper = canvas.getContext("2d");
  const card = document.getElementById("map-card");
  const status = document.getElementById("map-status");
  const legend = document.getElementById("map-legend");
  const colour = document.getElementById("map-colour");
  const selector = document.getElementById("map-select");
  const RECORD = 28;
  const COLOURS = 12;
  const CELLS = 128;
  const MARGIN = 24;
  let points = null;
  let cells = null;
  let view = { left: 0, top: 0, size: 1 };
  let selecting = false;
  let held = null;
  let chosen = null;
  let over = -1;
  let asked = 0;
  let waiting = 0;

  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  const read = (told) => {
    const bytes = bytesOf(told.points);
    const numbers = new DataView(bytes.buffer);
    const all = {
      count: told.count, x: new Float32Array(told.count), y: new Float32Array(told.count), bytes,
      source: new Uint16Array(told.count), type: new Uint16Array(told.count), cluster: new Uint16Array(told.count),
      names: { source: told.sources, type: told.types, cluster: [] },
    };
    for (let each = 0; each < told.count; each += 1) {
      const start = each * RECORD;
      all.x[each] = numbers.getUint16(start, true) / 65535;
      all.y[each] = numbers.getUint16(start + 2, true) / 65535;
      all.source[each] = numbers.getUint16(start + 4, true);
      all.type[each] = numbers.getUint16(start + 6, true);
      all.cluster[each] = numbers.getUint16(start + 8, true);
    }
    for (const link of document.querySelectorAll("[data-cluster]")) all.names.cluster[Number(link.dataset.cluster)] = link.textContent;
    return all;
  };

  // Points by the cell of a grid that they are in, so that the one under the pointer is found at once.
  const sorted = () => {
    const found = new Map();
    for (let each = 0; each < points.count; each += 1) {
      const key = Math.floor(points.x[each] * (CELLS - 1)) * CELLS + Math.floor(points.y[each] * (CELLS - 1));
      if (found.has(key)) found.get(key).push(each);
      else found.set(key, [each]);
    }
    return found;
  };

  const id = (each) => {
    const hex = [...points.bytes.subarray(each * RECORD + 12, each * RECORD + 28)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };

  const extent = () => ({ width: canvas.clientWidth - 2 * MARGIN, height: canvas.clientHeight - 2 * MARGIN });
  const across = (x) => MARGIN + ((x - view.left) / view.size) * extent().width;
  const down = (y) => MARGIN + ((y - view.top) / view.size) * extent().height;
  const placeOf = (across_, down_) => ({
    x: view.left + ((across_ - MARGIN) / extent().width) * view.size,
    y: view.top + ((down_ - MARGIN) / extent().height) * view.size,
  });

  // Groups beyond the number of colours share them.
  const palette = () => {
    const style = getComputedStyle(document.documentElement);
    return Array.from({ length: COLOURS }, (_, each) => style.getPropertyValue(`--c${each}`).trim());
  };

  const draw = () => {
    waiting = 0;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    paper.setTransform(ratio, 0, 0, ratio, 0, 0);
    paper.clearRect(0, 0, width, height);
    const group = points[colour.value];
    const colours = palette();
    const radius = Math.max(1.1, Math.min(5, 70 / Math.sqrt(points.count + 1) + 0.25 / view.size));
    for (let shade = 0; shade < COLOURS; shade += 1) {
      paper.fillStyle = colours[shade];
      paper.beginPath();
      for (let each = 0; each < points.count; each += 1) {
        if (group[each] % COLOURS !== shade) continue;
        const x = across(points.x[each]);
        const y = down(points.y[each]);
        if (x < -radius || y < -radius || x > width + radius || y > height + radius) continue;
        if (radius < 2) paper.rect(x - radius, y - radius, 2 * radius, 2 * radius);
        else {
          paper.moveTo(x + radius, y);
          paper.arc(x, y, radius, 0, 2 * Math.PI);
        }
      }
      paper.globalAlpha = 0.75;
      paper.fill();
      paper.globalAlpha = 1;
    }
    const ink = getComputedStyle(canvas).color;
    if (over >= 0) {
      paper.strokeStyle = ink;
      paper.lineWidth = 2;
      paper.beginPath();
      paper.arc(across(points.x[over]), down(points.y[over]), radius + 4, 0, 2 * Math.PI);
      paper.stroke();
    }
    if (chosen) {
      paper.strokeStyle = ink;
      paper.lineWidth = 1.5;
      paper.setLineDash([5, 4]);
      const left = across(chosen.left);
      const top = down(chosen.top);
      paper.strokeRect(left, top, across(chosen.right) - left, down(chosen.bottom) - top);
      paper.setLineDash([]);
    }
  };
  const redraw = () => { if (!waiting && points) waiting = requestAnimationFrame(draw); };

  const explain = () => {
    legend.replaceChildren();
    const names = points.names[colour.value];
    names.slice(0, COLOURS).forEach((name, each) => {
      const item = document.createElement("li");
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      for (const [key, value] of [["width", "10"], ["height", "10"], ["aria-hidden", "true"]]) mark.setAttribute(key, value);
      for (const [key, value] of [["cx", "5"], ["cy", "5"], ["r", "5"], ["fill", palette()[each]]]) dot.setAttribute(key, value);
      mark.append(dot);
      item.append(mark, name || "None");
      legend.append(item);
    });
    if (names.length > COLOURS) {
      const item = document.createElement("li");
      item.textContent = `and ${names.length - COLOURS} more, in the same colours`;
      legend.append(item);
    }
  };

  const zoom = (factor, at = { x: view.left + view.size / 2, y: view.top + view.size / 2 }) => {
    const size = Math.min(1, Math.max(0.002, view.size * factor));
    const share = size / view.size;
    move({ left: at.x - (at.x - view.left) * share, top: at.y - (at.y - view.top) * share, size });
  };
  const move = (to) => {
    const most = 1 - to.size;
    view = { size: to.size, left: Math.min(most + 0.1, Math.max(-0.1, to.left)), top: Math.min(most + 0.1, Math.max(-0.1, to.top)) };
    if (view.size === 1) view = { left: 0, top: 0, size: 1 };
    redraw();
  };

  const nearest = (across_, down_) => {
    const at = placeOf(across_, down_);
    const reach = Math.ceil((8 / Math.min(extent().width, extent().height)) * view.size * CELLS) + 1;
    const column = Math.floor(at.x * (CELLS - 1));
    const row = Math.floor(at.y * (CELLS - 1));
    let best = -1;
    let least = 10 * 10;
    for (let one = column - reach; one <= column + reach; one += 1) {
      for (let other = row - reach; other <= row + reach; other += 1) {
        for (const each of cells.get(one * CELLS + other) || []) {
          const far = (across(points.x[each]) - across_) ** 2 + (down(points.y[each]) - down_) ** 2;
          if (far < least) [best, least] = [each, far];
        }
      }
    }
    return best;
  };

  const show = (each) => {
    if (each === over) return;
    over = each;
    canvas.classList.toggle("over", over >= 0);
    redraw();
    clearTimeout(asked);
    if (over < 0) {
      card.hidden = true;
      return;
    }
    asked = setTimeout(async () => {
      const answer = await fetch(`/map/documents/${id(each)}`);
      if (!answer.ok || over !== each) return;
      const part = new DOMParser().parseFromString(await answer.text(), "text/html");
      card.replaceChildren(...part.body.children);
      card.hidden = false;
    }, 60);
  };

  const list = (area) => {
    const sides = [area.left, area.top, area.right, area.bottom].map((side) => Math.min(1, Math.max(0, side)).toFixed(4));
    location.assign(`/map?area=${sides.join(",")}#chosen`);
  };
  const spanned = (one, other) => ({
    left: Math.min(one.x, other.x), right: Math.max(one.x, other.x), top: Math.min(one.y, other.y), bottom: Math.max(one.y, other.y),
  });
  const select = (on) => {
    selecting = on;
    selector.setAttribute("aria-pressed", String(on));
    canvas.classList.toggle("selecting", on);
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (!points) return;
    held = { across: event.offsetX, down: event.offsetY, view: { ...view }, moved: false, selecting: selecting || event.shiftKey };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!points) return;
    if (!held) {
      show(nearest(event.offsetX, event.offsetY));
      return;
    }
    const [aside, below] = [event.offsetX - held.across, event.offsetY - held.down];
    if (Math.hypot(aside, below) > 4) held.moved = true;
    if (!held.moved) return;
    if (held.selecting) {
      chosen = spanned(placeOf(held.across, held.down), placeOf(event.offsetX, event.offsetY));
      redraw();
      return;
    }
    canvas.classList.add("moving");
    const { width, height } = extent();
    move({ size: view.size, left: held.view.left - (aside / width) * view.size, top: held.view.top - (below / height) * view.size });
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!held) return;
    const was = held;
    held = null;
    canvas.classList.remove("moving");
    if (was.moved && was.selecting) {
      select(false);
      list(chosen);
    } else if (!was.moved) {
      const each = nearest(event.offsetX, event.offsetY);
      if (each >= 0) location.assign(`/documents/${id(each)}`);
    }
  });
  canvas.addEventListener("pointerleave", () => { if (!held) show(-1); });
  canvas.addEventListener("wheel", (event) => {
    // A page that scrolls is not caught by the map; pinching, and turning the wheel with Control, zooms.
    if (!points || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, placeOf(event.offsetX, event.offsetY));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (!points) return;
    const step = view.size / 8;
    const steps = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (event.key in steps) move({ size: view.size, left: view.left + steps[event.key][0], top: view.top + steps[event.key][1] });
    else if (event.key === "+" || event.key === "=") zoom(0.6);
    else if (event.key === "-") zoom(1.7);
    else if (event.key === "Enter") list({ left: view.left, top: view.top, right: view.left + view.size, bottom: view.top + view.size });
    else return;
    event.preventDefault();
  });
  document.getElementById("map-in").addEventListener("click", () => zoom(0.6));
  document.getElementById("map-out").addEventListener("click", () => zoom(1.7));
  document.getElementById("map-all").addEventListener("click", () => move({ left: 0, top: 0, size: 1 }));
  selector.addEventListener("click", () => select(!selecting));
  colour.addEventListener("change", () => {
    explain();
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    explain();
    redraw();
  });
  new ResizeObserver(redraw).observe(canvas);

  const begin = async () => {
    const answer = await fetch(frame.dataset.points);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const told = await answer.json();
    points = read(told);
    cells = sorted();
    const area = new URLSearchParams(location.search).get("area");
    if (area) {
      const [left, top, right, bottom] = area.split(",").map(Number);
      chosen = { left, top, right, bottom };
    }
    explain();
    redraw();
    const more = told.left_out ? `, ${told.left_out.toLocaleString("en")} more are not drawn` : "";
    status.textContent = `${told.count.toLocaleString("en")} documents${more}. Point at one for its name; click to open it. Control and the wheel zoom.`;
  };
  begin().catch(() => {
    status.setAttribute("role", "alert");
    status.textContent = "The points of the map cannot be loaded; try again later.";
  });
}
