/** Hands bytes to the browser as a file: they are saved, and never shown as a page. */
export function save(name: string, parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type: 'application/octet-stream' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replace(/[/\\]/g, '_') || 'download';
  link.click();
  URL.revokeObjectURL(url);
}

/** One line of a CSV file. A text that a spreadsheet would take for a formula is kept from being one. */
export function csvLine(values: readonly (string | number | null)[]): string {
  const cells = values.map((value) => {
    const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? '');
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${cells.join(',')}\r\n`;
}
