// A second chat beside this one: the same page in a frame, with settings and a conversation of its own. The server answers
// both at the same time.

const kTwoName = "aerie-two";

function addBeside() {
  const frame = document.createElement("iframe");
  frame.id = "beside";
  frame.title = "The second chat";
  frame.src = kBesideAddress;
  find("#chat-view").after(frame);
  return frame;
}

// A frame that is hidden again goes on.
function showBeside(isShown) {
  const frame = find("#beside") ?? (isShown ? addBeside() : null);
  if (frame) frame.hidden = !isShown;
  find("#two").setAttribute("aria-pressed", isShown);
  stored(() => sessionStorage, kTwoName, isShown ? "on" : "");
}

function beginBeside() {
  if (isBeside) {
    document.documentElement.dataset.beside = true;
    return;
  }
  find("#two").addEventListener("click", () => {
    location.hash = "#chat";
    showBeside(find("#beside")?.hidden ?? true);
  });
  if (stored(() => sessionStorage, kTwoName) === "on") showBeside(true);
}
