// Keeps the page up to date: each event of /api/events makes it load itself again, and parts marked data-live that
// have changed take the place of the old ones. What the server renders is all there is; no page needs this script.
const state = document.getElementById("live");
const parts = () => [...document.querySelectorAll("[data-live]")];
const refreshable = () => parts().length > 0;
let loading = false;
let wanted = false;

function tell(text, kind) {
  state.hidden = false;
  if (state.textContent !== text) state.textContent = text;
  state.dataset.state = kind;
}

// Whoever reads, selects or types in a part is left in peace.
function busy(part) {
  const selection = getSelection();
  const selecting = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  const focused = document.activeElement;
  return selecting || (focused && focused !== document.body && part.contains(focused));
}

function keepOpen(from, to) {
  const open = [...from.querySelectorAll("details")].map((each) => each.open);
  [...to.querySelectorAll("details")].forEach((each, place) => {
    if (place < open.length) each.open = open[place];
  });
}

async function refresh() {
  if (document.hidden || !refreshable()) return;
  if (loading) {
    wanted = true;
    return;
  }
  loading = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts()) {
      const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (!other || busy(part)) continue;
      keepOpen(part, other);
      if (other.outerHTML !== part.outerHTML) part.replaceWith(document.adoptNode(other));
    }
  } catch {
    // The stream of events tells when the server is gone.
  } finally {
    loading = false;
    if (wanted) {
      wanted = false;
      setTimeout(refresh, 500);
    }
  }
}

const FIRST_PAUSE_S = 2;
const LONGEST_PAUSE_S = 30;
let source;
let last = "";
let pause = FIRST_PAUSE_S;
let asking;

function follow() {
  source = new EventSource("/api/events");
  source.addEventListener("open", () => {
    pause = FIRST_PAUSE_S;
  });
  source.addEventListener("overview", (event) => {
    tell("live", "live");
    const overview = JSON.parse(event.data);
    document.dispatchEvent(new CustomEvent("overview", { detail: overview }));
    last = event.data;
    refresh();
  });
  source.addEventListener("trouble", (event) => tell(JSON.parse(event.data).message, "lost"));
  source.addEventListener("error", lost);
}

// A browser asks again by itself when the connection breaks, but never after a refusal: too many pages are open, the
// visitor was logged out, or a proxy answers for a server that starts anew.
function lost() {
  if (source.readyState !== EventSource.CLOSED) {
    tell("connection lost; trying again", "lost");
    return;
  }
  tell(`live updates were refused; asking again in ${pause} s`, "lost");
  asking = setTimeout(follow, pause * 1000);
  pause = Math.min(2 * pause, LONGEST_PAUSE_S);
}

follow();
addEventListener("visibilitychange", () => {
  if (!document.hidden && last) refresh();
});
// A page that is left must not keep the server's stream open.
addEventListener("pagehide", () => {
  clearTimeout(asking);
  source.close();
});
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
