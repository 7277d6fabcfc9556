// Files dropped or chosen are put into the text; the form itself needs no script.
const form = document.getElementById("what-if");
const text = document.getElementById("manifest");
const file = document.getElementById("file");
const trouble = document.getElementById("drop-trouble");
const largest = Number(form.dataset.largest);
const tooLarge = `That is more than ${largest / 1024} KiB; use dsched simulate.`;
document.getElementById("choose").hidden = false;

async function take(files) {
  trouble.textContent = "";
  const size = [...files].reduce((sum, each) => sum + each.size, 0);
  if (size > largest) {
    trouble.textContent = tooLarge;
    return;
  }
  const texts = await Promise.all([...files].map((each) => each.text()));
  text.value = texts.join("\n---\n");
}

for (const kind of ["dragenter", "dragover"]) {
  text.addEventListener(kind, (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    text.classList.add("over");
  });
}
text.addEventListener("dragleave", () => text.classList.remove("over"));
text.addEventListener("drop", (event) => {
  text.classList.remove("over");
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  take(event.dataTransfer.files);
});
file.addEventListener("change", () => take(file.files));
form.addEventListener("submit", (event) => {
  if (new TextEncoder().encode(text.value).length > largest) {
    event.preventDefault();
    trouble.textContent = tooLarge;
    return;
  }
  document.getElementById("try").textContent = "Working it out …";
});
