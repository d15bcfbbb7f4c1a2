import { useEffect, useRef } from 'preact/hooks';
import type { AlignedData, Options } from 'uplot';
import { nowMs } from '../base/clock.ts';
import { useStore } from '../base/store.ts';
import { isDark } from '../base/theme.ts';
import type { UPlot } from './uplot.ts';

/** One line of a chart. */
export interface Series {
  label: string;
  /** The name of a colour of the design. */
  color: 'accent-text' | 'good' | 'warn' | 'bad';
  is_bars?: boolean;
}

interface ChartProps {
  /** What it shows, for those who do not see it; the figures are in a table beside it. */
  label: string;
  series: readonly Series[];
  /** Times in seconds, then the values of each series. */
  data: AlignedData;
  height?: number;
  format?: (value: number) => string;
}

/** The least time that a chart shows. */
const SPAN_MIN_S = 300;
const FONT = '11px system-ui, sans-serif';

/** Values over time. The library comes with the first chart. */
export function Chart({ label, series, data, height = 180, format = String }: ChartProps) {
  const element = useRef<HTMLDivElement>(null);
  const shown = useRef<{ setData(data: AlignedData): void } | null>(null);
  const latest = useRef(data);
  latest.current = data;
  const is_dark = useStore(isDark);
  const shape = JSON.stringify(series);

  useEffect(() => {
    const box = element.current;
    if (box === null) return;
    let is_gone = false;
    let end = () => {};
    void import('./uplot.ts').then(({ UPlot: Plot }) => {
      if (is_gone) return;
      const plot = new Plot(
        optionsOf(series, { width: box.clientWidth, height, format, Plot }),
        latest.current,
        box,
      );
      const watching = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height }));
      watching.observe(box);
      shown.current = plot;
      end = () => {
        watching.disconnect();
        plot.destroy();
        shown.current = null;
      };
    });
    return () => {
      is_gone = true;
      end();
    };
  }, [shape, is_dark, height]);
  useEffect(() => shown.current?.setData(data), [data]);

  return (
    <div ref={element} role="img" aria-label={label} style={{ height: `${height}px`, overflow: 'hidden' }} />
  );
}

const hours = new Intl.DateTimeFormat('sv-SE', { hour: '2-digit', minute: '2-digit' });

function clock(time_s: number): string {
  return hours.format(time_s * 1_000);
}

/** Without points there is no time that a label could tell. */
function timeLabels({ data }: { data: AlignedData }, values: number[]): string[] {
  return values.map((value) => (data[0].length === 0 ? '' : clock(value)));
}

/** Without points, or with one, the last minutes. */
function timeRange(first: number | null, last: number | null): [number, number] {
  const end = last ?? nowMs() / 1_000;
  return [Math.min(first ?? end, end - SPAN_MIN_S), end];
}

interface Look {
  width: number;
  height: number;
  format: (value: number) => string;
  Plot: typeof UPlot;
}

function optionsOf(series: readonly Series[], { width, height, format, Plot }: Look): Options {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const line = color('line');
  const axis = {
    stroke: color('muted'),
    font: FONT,
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { range: (_plot, first, last) => timeRange(first, last) },
      y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.15)] },
    },
    axes: [
      { ...axis, grid: { show: false }, space: 70, size: 28, values: timeLabels },
      { ...axis, size: 74, space: 34, values: (_plot, values) => values.map((value) => format(value)) },
    ],
    series: [
      {},
      ...series.map(({ label, color: name, is_bars }) => ({
        label,
        stroke: color(name),
        fill: `${color(name)}${is_bars ? '99' : '1f'}`,
        width: 1.5,
        points: { show: false },
        ...(is_bars && Plot.paths.bars ? { paths: Plot.paths.bars({ size: [0.7, 40], radius: 0.15 }) } : {}),
      })),
    ],
  };
}
