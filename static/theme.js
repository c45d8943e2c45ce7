// runs before anything is drawn: a page that follows the system must not flash in the other theme
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const follow = () => {
  if (root.dataset.theme === "auto") root.dataset.bsTheme = system.matches ? "dark" : "light";
};
system.addEventListener("change", follow);
follow();
