// In the page itself, before any script is loaded: asks for the first steps, so that they are on their way meanwhile.
{
  const address = new URL(location.href).searchParams;
  const key = address.get("key");
  const url = `/proxy/trajectories/${encodeURIComponent(key)}/steps?start=${Number(address.get("step")) || 0}&count=12`; // as ahead.js asks
  if (key) globalThis.insAsked = { url, answer: fetch(url, { credentials: "same-origin" }) };
  globalThis.insAsked?.answer.catch(() => {}); // whoever takes it says so
}
