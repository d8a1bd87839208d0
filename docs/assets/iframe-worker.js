// Search without a server. A page that was opened from disk may not start a Worker, which mkdocs-material's search runs
// in; so here its script runs in a hidden frame that speaks like one. The theme's offline plugin would fetch such a
// script from the network; it leaves it to a script with "iframe-worker" in its name.
// Not there: importScripts, which the search needs for languages other than English only.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = () => {
        this.ready = true;
        for (const data of this.waiting.splice(0)) this.postMessage(data);
      };
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.ready) this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
