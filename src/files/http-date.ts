const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = '\\d{2}:\\d{2}:\\d{2}';
const IMF_FIXDATE = new RegExp(`^${DAY}, \\d{2} ${MONTH} \\d{4} ${TIME} GMT$`);
const RFC_850 = new RegExp(`^${DAY}[a-z]{3,6}, \\d{2}-${MONTH}-\\d{2} ${TIME} GMT$`);
const ASCTIME = new RegExp(`^${DAY} ${MONTH} [ \\d]\\d ${TIME} \\d{4}$`);

/** The time of an HTTP date, in ms since the epoch; null for any other text. RFC 9110, section 5.6.7. */
export function httpDate(text: string): number | null {
  if (!IMF_FIXDATE.test(text) && !RFC_850.test(text) && !ASCTIME.test(text)) return null;
  const time_ms = Date.parse(ASCTIME.test(text) ? `${text} GMT` : text);
  return Number.isNaN(time_ms) ? null : time_ms;
}
