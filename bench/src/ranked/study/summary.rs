//! Charts of what is measured with one table anyway (E9, E10), and of all experiments together (E11).

use super::{Experiment, Measured, Study};
use crate::ranked::{answers::Agreement, chart::Chart, times::Figures};

pub fn charts(study: &mut Study<'_>, figures: &[Figures], agreements: &[Agreement]) {
    if study.has(Experiment::E9) {
        let chart = kinds(figures);
        study.findings.charts.push(chart);
    }
    if study.has(Experiment::E10) {
        let chart = equal_answers(agreements);
        study.findings.charts.push(chart);
    }
    if study.has(Experiment::E11) {
        let chart = parts_against_time(study);
        study.findings.charts.push(chart);
    }
}

/// E9: the kinds of queries over one table.
fn kinds(figures: &[Figures]) -> Chart {
    let mut chart = Chart {
        name: "E9".to_owned(),
        title: "E9: kinds of queries, one table".to_owned(),
        across: "kind".to_owned(),
        up: "mean time in ms, median of the rounds".to_owned(),
        has_bars: true,
        ..Chart::default()
    };
    let mut seen = Vec::new();
    for one in figures.iter().filter(|it| it.setting == "one table") {
        let key = (one.server, one.kind, one.clients);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let own = figures
            .iter()
            .filter(|it| it.setting == one.setting && (it.server, it.kind, it.clients) == key);
        let mean = crate::ranked::times::median(own.map(|it| it.mean_us).collect());
        chart.add(&format!("{} clients", one.clients), one.server, one.kind.name(), mean / 1e3);
    }
    chart
}

/// E10: how many answers are those of one index.
fn equal_answers(agreements: &[Agreement]) -> Chart {
    let mut chart = Chart {
        name: "E10".to_owned(),
        title: "E10: answers equal to those of one index".to_owned(),
        across: "kind".to_owned(),
        up: "per cent of the queries".to_owned(),
        has_bars: true,
        ..Chart::default()
    };
    for Agreement { kind, side, queries, different, .. } in agreements {
        let share = 100.0 * (queries - different) as f64 / (*queries).max(1) as f64;
        chart.add("", side, kind.name(), share);
    }
    chart
}

/// E11: time by the number of parts, as a multiple of the time with one part in the same setting.
fn parts_against_time(study: &Study<'_>) -> Chart {
    let mut chart = Chart {
        name: "E11".to_owned(),
        title: "E11: parts against time, in the settings of all experiments, 4 clients".to_owned(),
        across: "parts".to_owned(),
        up: "mean time, that of one part is 1".to_owned(),
        ..Chart::default()
    };
    let all = &study.findings.figures;
    let mut parts: Vec<usize> = all.iter().map(|it| it.parts).collect();
    parts.sort_unstable();
    parts.dedup();
    let key = |it: &Measured| {
        let setting = match it.experiment {
            // The number of parts is told by the category.
            Experiment::E5 => String::new(),
            _ => it.figures.setting.clone(),
        };
        (it.experiment, setting, it.figures.server)
    };
    let mut keys = Vec::new();
    for it in all.iter().filter(|it| it.figures.clients == super::CLIENTS) {
        let is_compared =
            !matches!(it.experiment, Experiment::E4 | Experiment::E6 | Experiment::E8);
        // Many ways to work would hide each other.
        let is_usual = it.experiment != Experiment::E1 || it.figures.setting.contains("threads");
        if is_compared && is_usual && !keys.contains(&key(it)) {
            keys.push(key(it));
        }
    }
    for wanted in keys {
        let mean = |parts: usize| {
            let fits = |it: &Measured| {
                key(it) == wanted && it.parts == parts && it.figures.clients == super::CLIENTS
            };
            study.median(fits, |it| it.mean_us)
        };
        let Some(one) = mean(1).filter(|mean| *mean > 0.0) else { continue };
        let (experiment, setting, server) = &wanted;
        for parts in &parts {
            if let Some(mean) = mean(*parts) {
                let series = format!("{experiment:?} {setting}");
                chart.add(server, series.trim_end(), &parts.to_string(), mean / one);
            }
        }
    }
    chart
}
