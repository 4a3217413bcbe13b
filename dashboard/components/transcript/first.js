// In the page itself, before any script is loaded: asks for the first steps and the findings, and lets Streamlit begin once they are painted, or soon.
{
  const PATIENCE_MS = 700;
  const address = new URL(location.href).searchParams;
  const key = address.get("key");
  if (key) {
    globalThis.insAsked = [`steps?start=${Number(address.get("step")) || 0}&count=12`, "findings"].map((what) => {
      const url = `/proxy/trajectories/${encodeURIComponent(key)}/${what}`; // as ahead.js asks
      const answer = fetch(url, { credentials: "same-origin" });
      answer.catch(() => {}); // whoever takes it says so
      return { url, answer };
    });
  }
  globalThis.insStreamlit = () => {
    const put = document.getElementById("ins-streamlit");
    if (put) document.head.append(put.content);
    put?.remove();
  };
  setTimeout(insStreamlit, key ? PATIENCE_MS : 0);
}
