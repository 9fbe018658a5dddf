// Values under the pointer. The curves hold all numbers themselves; without this script the page is complete.
for (const svg of document.querySelectorAll("svg.curves")) {
  const area = svg.parentNode, { across, axis, begin, digits, low, high, unit } = svg.dataset;
  const hair = area.appendChild(document.createElement("div"));
  const hint = area.appendChild(document.createElement("div"));
  hair.className = "hair"; hint.className = "hint";
  hair.hidden = hint.hidden = true;
  const lines = [...svg.querySelectorAll("path[data-name]")].map((path) => ({
    path, numbers: path.getAttribute("d").slice(1).split(" ").map(Number),
  }));
  const told = (value) => unit === "share" ? (100 * value).toFixed(1) + " %"
    : unit === "count" ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
  const nearest = (numbers, x) => {
    let best = 0;
    for (let i = 0; i < numbers.length; i += 2)
      if (Math.abs(numbers[i] - x) < Math.abs(numbers[best] - x)) best = i;
    return best;
  };
  area.addEventListener("pointermove", (event) => {
    const box = area.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    const place = Number(begin) + share * (across - begin);
    hint.textContent = `${place.toLocaleString("en", { maximumFractionDigits: digits })} ${axis}`;
    for (const { path, numbers } of lines) {
      const y = numbers[nearest(numbers, 1000 * share) + 1];
      const key = document.createElement("i"), row = document.createElement("div");
      key.className = "key " + path.getAttribute("class");
      row.append(key, path.dataset.name + " " + told(Number(low) + (1 - y / 1000) * (high - low)));
      hint.append(row);
    }
    hair.hidden = hint.hidden = false;
    hair.style.left = 100 * share + "%";
    hint.style.left = share < 0.5 ? `calc(${100 * share}% + .7rem)` : "auto";
    hint.style.right = share < 0.5 ? "auto" : `calc(${100 * (1 - share)}% + .7rem)`;
  });
  area.addEventListener("pointerleave", () => { hair.hidden = hint.hidden = true; });
}
