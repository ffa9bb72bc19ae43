//! Executors over time: busy slots above, the tasks of each executor below.

use super::{charts, say};
use crate::render::words;
use model::{Application, Count, Metric, Millis, Report};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Executors drawn at most.
const MOST_EXECUTORS: usize = 40;
/// Above so many tasks, or lanes of an executor, rows show how busy it was instead of each task.
const MOST_TASKS: usize = 20_000;
const MOST_LANES: usize = 8;
/// Units of the time axis; a task shorter than one is merged with its neighbour.
const UNITS: i64 = 1_600;
/// Bins of the busy curve and of busy rows.
const BINS: usize = 480;
const ROW: f64 = 12.5;
const BAR: f64 = 11.0;
const CURVE: f64 = 44.0;
const TOP: f64 = 18.0;

/// A task on the chart.
struct Bar {
    executor: usize,
    from: i64,
    to: i64,
    stage: u32,
    attempt: u32,
    index: u32,
}

struct Chart<'a> {
    app: &'a Application,
    start: i64,
    wall: i64,
    bars: Vec<Bar>,
    /// Executors that ran tasks, in the order of their rows.
    rows: Vec<usize>,
    slow: Vec<Bar>,
}

/// The card; empty when there is no task to draw.
pub fn timeline(report: &Report, app: &Application) -> String {
    let Some(chart) = Chart::of(report, app) else { return String::new() };
    let shown = chart.rows.len().min(MOST_EXECUTORS);
    let height = TOP + CURVE + 8.0 + shown as f64 * ROW + 18.0;
    let mut svg = String::new();
    chart.axis(&mut svg, height);
    chart.curve(&mut svg, report.summary.slots);
    for (at, executor) in chart.rows.iter().take(shown).enumerate() {
        chart.row(&mut svg, at, *executor);
    }
    chart.slow_bars(&mut svg);
    chart.stages(&mut svg, height);
    let tasks = Count(chart.bars.len() as u64);
    let cut = match chart.rows.len() > shown {
        true => format!(", {shown} of {} executors drawn", chart.rows.len()),
        false => String::new(),
    };
    let slowest = match chart.slow.is_empty() {
        true => String::new(),
        false => "<span><i class=\"wait\"></i>slowest of its stage</span>".to_owned(),
    };
    format!(
        "<section class=\"card\"><div class=\"hd\"><h2>Executors over time</h2>\
         <span class=\"dim\">busy slots above, {tasks} tasks below{cut}</span>\
         <div class=\"r legend\"><span><i class=\"task\"></i>task</span>{slowest}</div></div>\
         <div class=\"tl\"><div class=\"names\" style=\"height:{height}px\">{}</div>\
         <svg role=\"img\" aria-label=\"Tasks of each executor over {}\" width=\"100%\" height=\"{height}\">{svg}</svg></div></section>",
        chart.names(shown, report.summary.slots),
        Millis(chart.wall)
    )
}

impl<'a> Chart<'a> {
    fn of(report: &Report, app: &'a Application) -> Option<Self> {
        let bars = bars(app);
        let start = app.start_ms().unwrap_or(i64::MAX).min(bars.iter().map(|b| b.from).min()?);
        let wall = app.end_ms().unwrap_or(0).max(bars.iter().map(|b| b.to).max()?) - start;
        if wall <= 0 {
            return None;
        }
        let mut rows: Vec<usize> = bars.iter().map(|b| b.executor).collect();
        rows.sort_unstable();
        rows.dedup();
        // By number where ids are numbers, as people look for them.
        rows.sort_by_key(|row| {
            let id = app.executors.get(*row).map_or("", |e| &*e.id);
            (id.parse::<u64>().unwrap_or(u64::MAX), id)
        });
        let mut chart = Self { app, start, wall, bars, rows, slow: Vec::new() };
        chart.slow = chart.slowest(report);
        Some(chart)
    }

    /// Slowest tasks of the stages that findings blame, where they stand out on the axis.
    fn slowest(&self, report: &Report) -> Vec<Bar> {
        const MOST: usize = 12;
        let chapters = words::chapters(report, false);
        let mut blamed: Vec<u32> = chapters.iter().filter_map(|c| c.root.scope.stage).collect();
        blamed.dedup();
        let long = |bar: &&Bar| bar.to - bar.from >= self.wall / 50;
        let worst = |stage: u32| {
            let of_stage = self.bars.iter().filter(|bar| bar.stage == stage);
            of_stage.max_by_key(|bar| bar.to - bar.from).filter(long).filter(|bar| self.stands_out(bar))
        };
        blamed.into_iter().take(MOST).filter_map(worst).map(Bar::copy).collect()
    }

    fn stands_out(&self, bar: &Bar) -> bool {
        let Some(stage) = self.app.stage(bar.stage, bar.attempt) else { return false };
        let usual = stage.quantiles(Metric::DurationMs).p75;
        2 * (bar.to - bar.from) >= 3 * usual
    }

    /// Position on the axis in per cent.
    fn x(&self, at: i64) -> f64 {
        (at - self.start) as f64 / self.wall as f64 * 100.0
    }

    fn y(row: usize) -> f64 {
        TOP + CURVE + 8.0 + row as f64 * ROW
    }

    fn axis(&self, svg: &mut String, height: f64) {
        let step = charts::step_ms(self.wall, 8);
        let clock = charts::clock(self.start).map(|c| format!("{} UTC", c.0)).unwrap_or_default();
        let bottom = height - 18.0;
        for at in (0..).map(|i| i * step).take_while(|at| *at <= self.wall) {
            let x = self.x(self.start + at);
            let label = if at == 0 { clock.clone() } else { charts::tick(at) };
            // A label at the very end would hang over the edge.
            let (dx, anchor) = if x > 95.0 { (-3, "end") } else { (3, "start") };
            let _ = write!(
                svg,
                "<line class=\"gl\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"14\" y2=\"{bottom}\"/>\
                 <text class=\"ax\" x=\"{x:.2}%\" dx=\"{dx}\" y=\"10\" text-anchor=\"{anchor}\">{label}</text>"
            );
        }
    }

    /// Tasks running at once, the mean of each bin, with the slots as a line.
    fn curve(&self, svg: &mut String, slots: f64) {
        let busy = self.busy(self.bars.iter());
        let peak = busy.iter().copied().fold(slots.max(1.0), f64::max);
        let mut path = String::from("M0 1");
        for (i, running) in busy.iter().enumerate() {
            let y = 1.0 - running / peak;
            let _ = write!(path, "L{i} {y:.3}L{} {y:.3}", i + 1);
        }
        let _ = write!(
            svg,
            "<svg x=\"0\" y=\"{TOP}\" width=\"100%\" height=\"{CURVE}\" viewBox=\"0 0 {BINS} 1\" preserveAspectRatio=\"none\">\
             <path class=\"busy\" d=\"{path}L{BINS} 1Z\"/></svg>"
        );
        if slots > 0.0 {
            let y = TOP + CURVE * (1.0 - slots / peak);
            let _ = write!(svg, "<line class=\"slots\" x1=\"0\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        }
        self.idle_note(svg, &busy, slots);
    }

    /// Tasks running in each bin, on average.
    fn busy<'b>(&self, bars: impl Iterator<Item = &'b Bar>) -> Vec<f64> {
        let mut busy = vec![0.0; BINS];
        let bin = self.wall as f64 / BINS as f64;
        for bar in bars {
            let (from, to) = ((bar.from - self.start) as f64 / bin, (bar.to - self.start) as f64 / bin);
            for (i, cell) in busy.iter_mut().enumerate().take(to.ceil() as usize).skip(from as usize) {
                *cell += (to.min(i as f64 + 1.0) - from.max(i as f64)).max(0.0);
            }
        }
        busy
    }

    /// Names the longest time in which hardly a slot worked.
    fn idle_note(&self, svg: &mut String, busy: &[f64], slots: f64) {
        // Room for the words, about a fifth of the width.
        const SHARE_OF_WALL: usize = 5;
        let peak = busy.iter().copied().fold(slots, f64::max).round();
        let limit = (peak * 0.5).max(1.1) + 0.05;
        let (mut best, mut from) = ((0, 0), None);
        for (i, running) in busy.iter().chain([&f64::MAX]).enumerate() {
            match (from, *running <= limit) {
                (None, true) => from = Some(i),
                (Some(begin), false) => {
                    if i - begin > best.1 - best.0 {
                        best = (begin, i);
                    }
                    from = None;
                }
                _ => {}
            }
        }
        let length = best.1 - best.0;
        if slots < 2.0 || length * SHARE_OF_WALL < BINS {
            return;
        }
        let mut between = busy[best.0..best.1].to_vec();
        between.sort_unstable_by(f64::total_cmp);
        let most = between[between.len() / 2].round();
        let time = Millis(self.wall * length as i64 / BINS as i64);
        let text = format!("{most:.0} of {peak:.0} slots busy for {time}");
        let x = (best.0 + best.1) as f64 / 2.0 / BINS as f64 * 100.0;
        let y = TOP + 16.0;
        let _ =
            write!(svg, "<text class=\"note\" x=\"{x:.2}%\" y=\"{y}\" text-anchor=\"middle\">{}</text>", say(&text));
    }

    fn row(&self, svg: &mut String, at: usize, executor: usize) {
        self.lifetime(svg, at, executor);
        let bars: Vec<&Bar> = self.bars.iter().filter(|bar| bar.executor == executor).collect();
        let lanes = lanes(&bars);
        let count = lanes.iter().max().map_or(1, |lane| lane + 1);
        let paths = match self.bars.len() > MOST_TASKS || count > MOST_LANES {
            true => self.heat(&bars, count),
            false => self.each(&bars, &lanes, count),
        };
        let y = Self::y(at);
        let _ = write!(
            svg,
            "<svg x=\"0\" y=\"{y}\" width=\"100%\" height=\"{BAR}\" viewBox=\"0 0 {UNITS} {count}\" preserveAspectRatio=\"none\">"
        );
        for (class, path) in paths {
            let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
        }
        svg.push_str("</svg>");
    }

    /// From when to when the executor was there, and a cross where it was lost.
    fn lifetime(&self, svg: &mut String, at: usize, executor: usize) {
        let Some(executor) = self.app.executors.get(executor) else { return };
        let end = self.start + self.wall;
        let from = executor.added_ms.unwrap_or(self.start).clamp(self.start, end);
        let to = executor.removed_ms.unwrap_or(end).clamp(from, end);
        let (x, y) = (self.x(from), Self::y(at));
        let _ = write!(
            svg,
            "<rect class=\"life\" x=\"{x:.2}%\" width=\"{:.2}%\" y=\"{y}\" height=\"{BAR}\"/>",
            self.x(to) - x
        );
        // An executor that leaves in the last moments left with the application.
        if executor.removed_ms.is_some() && to < end - self.wall / 100 {
            let reason = executor.removed_reason.as_deref().unwrap_or("removed");
            let _ = write!(
                svg,
                "<text class=\"lost\" x=\"{:.2}%\" dx=\"3\" y=\"{:.1}\">✕<title>{}</title></text>",
                self.x(to),
                y + 9.5,
                say(reason)
            );
        }
    }

    /// Each task as a bar in a lane; neighbours that are nearer than a unit become one.
    fn each(&self, bars: &[&Bar], lanes: &[usize], count: usize) -> BTreeMap<&'static str, String> {
        let unit = |at: i64| (at - self.start) * UNITS / self.wall;
        let mut open: BTreeMap<(usize, &str), (i64, i64)> = BTreeMap::new();
        let mut paths: BTreeMap<&str, String> = BTreeMap::new();
        let put = |paths: &mut BTreeMap<&'static str, String>, class, lane: usize, (from, to): (i64, i64)| {
            let thick = if count > 1 { 0.9 } else { 1.0 };
            let _ = write!(paths.entry(class).or_default(), "M{from} {lane}h{}v{thick}h-{0}z", to - from);
        };
        for (bar, &lane) in bars.iter().zip(lanes) {
            let class = if bar.stage.is_multiple_of(2) { "t3" } else { "t4" };
            let (from, to) = (unit(bar.from), unit(bar.to).max(unit(bar.from) + 1));
            match open.get_mut(&(lane, class)) {
                Some(last) if from <= last.1 && last.1 - last.0 < 3 => last.1 = to.max(last.1),
                Some(last) => {
                    // One unit is left free so that neighbours can be told apart.
                    let ended = std::mem::replace(last, (from, to));
                    put(&mut paths, class, lane, (ended.0, ended.1.min(from - 1).max(ended.0 + 1)));
                }
                None => drop(open.insert((lane, class), (from, to))),
            }
        }
        for ((lane, class), span) in open {
            put(&mut paths, class, lane, span);
        }
        paths
    }

    /// How busy the executor was, by shade.
    fn heat(&self, bars: &[&Bar], count: usize) -> BTreeMap<&'static str, String> {
        const SHADES: [&str; 5] = ["", "t1", "t2", "t3", "t4"];
        let shade = |busy: &f64| ((busy / count as f64 * 4.0).ceil() as usize).min(4);
        let shades: Vec<usize> = self.busy(bars.iter().copied()).iter().map(shade).collect();
        let mut paths: BTreeMap<&str, String> = BTreeMap::new();
        let mut at = 0;
        for run in shades.chunk_by(|a, b| a == b) {
            let x = |bin: usize| bin as i64 * UNITS / BINS as i64;
            if run[0] > 0 {
                let path = paths.entry(SHADES[run[0]]).or_default();
                let _ = write!(path, "M{} 0h{}v{count}h-{1}z", x(at), x(at + run.len()) - x(at));
            }
            at += run.len();
        }
        paths
    }

    fn slow_bars(&self, svg: &mut String) {
        for bar in &self.slow {
            let Some(at) = self.rows.iter().take(MOST_EXECUTORS).position(|row| *row == bar.executor) else { continue };
            let (x, y) = (self.x(bar.from), Self::y(at));
            let width = self.x(bar.to) - x;
            let text = format!("task {} of stage {}, {}", bar.index, bar.stage, Millis(bar.to - bar.from));
            let _ = write!(
                svg,
                "<rect class=\"slow\" x=\"{x:.2}%\" width=\"{width:.2}%\" y=\"{y}\" height=\"{BAR}\" rx=\"1.5\"><title>{}</title></rect>",
                say(&text)
            );
            if width > 30.0 {
                let _ = write!(
                    svg,
                    "<text class=\"onslow\" x=\"{:.2}%\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    x + width / 2.0,
                    y + 9.0,
                    say(&text)
                );
            }
        }
    }

    /// Names stages below the rows, where there is room.
    fn stages(&self, svg: &mut String, height: f64) {
        const APART: f64 = 9.0;
        let mut spans: Vec<(i64, i64, u32)> =
            self.app.stages.iter().filter_map(|s| s.span_ms().map(|(from, to)| (from, to, s.id))).collect();
        spans.sort_unstable();
        let mut free_from = -1.0;
        for (from, to, id) in spans {
            let x = self.x(from);
            let wide = (to - from) * 25 >= self.wall;
            if !wide || x < free_from || x > 100.0 - APART {
                continue;
            }
            let y = height - 5.0;
            let _ = write!(svg, "<text class=\"ax\" x=\"{x:.2}%\" y=\"{y}\">Stage {id}</text>");
            free_from = x + APART;
        }
    }

    /// The column of names left of the drawing.
    fn names(&self, shown: usize, slots: f64) -> String {
        let peak = self.busy(self.bars.iter()).into_iter().fold(slots.max(1.0), f64::max);
        let mut html = format!(
            "<span style=\"top:{}px\">{}</span><span style=\"top:{}px\">0</span>",
            TOP - 6.0,
            words::slots(peak.round()),
            TOP + CURVE - 9.0
        );
        for (at, executor) in self.rows.iter().take(shown).enumerate() {
            let name = self.app.executors.get(*executor).map_or("?", |e| &*e.id);
            let _ = write!(html, "<span style=\"top:{}px\">{}</span>", Self::y(at) - 2.0, say(name));
        }
        html
    }
}

impl Bar {
    fn copy(&self) -> Self {
        Self { ..*self }
    }
}

/// All tasks with a launch and an end, by launch.
fn bars(app: &Application) -> Vec<Bar> {
    let end = app.end_ms().unwrap_or_default();
    let mut bars = Vec::new();
    for stage in &app.stages {
        let tasks = &stage.tasks;
        for row in 0..tasks.len() {
            let from = tasks.value(Metric::LaunchMs, row);
            let finish = tasks.value(Metric::FinishMs, row);
            let to = if finish > 0 { finish } else { end };
            if from > 0 && to >= from {
                let (executor, index) = (tasks.executor(row), tasks.index(row));
                bars.push(Bar { executor, from, to, stage: stage.id, attempt: stage.attempt, index });
            }
        }
    }
    bars.sort_by_key(|bar| bar.from);
    bars
}

/// A lane for each bar so that none overlap; bars come by launch.
fn lanes(bars: &[&Bar]) -> Vec<usize> {
    let mut free_at: Vec<i64> = Vec::new();
    let mut lanes = Vec::with_capacity(bars.len());
    for bar in bars {
        match free_at.iter().position(|end| *end <= bar.from) {
            Some(lane) => {
                free_at[lane] = bar.to;
                lanes.push(lane);
            }
            None => {
                lanes.push(free_at.len());
                free_at.push(bar.to);
            }
        }
    }
    lanes
}
