// Addresses within the page of a job: they keep which deleted job (`of`) and which run of it is shown.

// Returns the address of a pod's log in the run that is shown; uid is that of one whose name another has by now.
export function logAddress(pod, uid = "") {
  const kept = [...new URLSearchParams(location.search)].filter(([name]) => name === "of" || name === "run");
  return `?${new URLSearchParams([...kept, ["tab", "logs"], ["pod", pod], ...(uid ? [["uid", uid]] : [])])}`;
}
