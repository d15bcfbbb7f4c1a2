/**
 * Opens a terminal, whose library writes its rules into `style` elements: the page's content security policy does not let
 * those act, so that those that are made meanwhile keep their rules as style sheets of the document.
 */
export function withStyleSheets(open: () => void): void {
  const own = document.createElement.bind(document) as (name: string, options?: object) => HTMLElement;
  document.createElement = ((name: string, options?: object) =>
    name === 'style' ? sheetElement(own('template')) : own(name, options)) as Document['createElement'];
  try {
    open();
  } finally {
    // The document's own is its prototype's.
    Reflect.deleteProperty(document, 'createElement');
  }
}

/** Stands for a `style` element; it is none, because the policy reports even an empty one. */
function sheetElement(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  let text = '';
  Object.defineProperty(element, 'textContent', {
    get: () => text,
    set(value: string) {
      text = value;
      sheet.replaceSync(value);
    },
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
