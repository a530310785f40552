//! Experiments with several servers: E4, E5, E6 and E8. All servers are processes of this machine.

use std::{collections::BTreeSet, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::{Context, Result};

use super::{
    CLIENTS, Experiment, Measured, Point, Study, Truth,
    node::{Engine, LOCALS, Node, REMOTE, Share, Threads},
    one_server::counts,
};
use crate::ranked::servers::Server;

/// The numbers of parts that each server has in E5.
const PARTS: [usize; 3] = [1, 2, 4];
/// The number of parts that each has in E4, and in E8.
const PARTS_OF_E4: usize = 4;
const PARTS_OF_E8: usize = 2;

/// Servers that share the rows. Field order is drop order: a server ends before its directory is removed.
struct Group {
    engine: Engine,
    running: Vec<Server>,
    _nodes: Vec<Node>,
    /// The number of parts that each has.
    parts: usize,
}

pub fn run(study: &mut Study<'_>) -> Result<()> {
    let asked = [Experiment::E4, Experiment::E5, Experiment::E8];
    let (needs_servers, needs_disks) = (asked.iter().any(|it| study.has(*it)), has_disks(study)?);
    if !needs_servers && !needs_disks {
        return Ok(());
    }
    let truth = truth(study)?;
    if needs_servers {
        study.note(
            "E4, E5, E8: all servers are processes of this machine and share its processors: what several machines gain is \
             not shown."
                .to_owned(),
        );
        for count in counts(&study.options.server_counts) {
            for parts in PARTS {
                for engine in study.engines.clone() {
                    servers(study, engine, (count, parts), &truth)?;
                }
            }
        }
    }
    if needs_disks {
        disks(study, &truth)?;
    }
    charts(study);
    Ok(())
}

/// The answers of one table with all rows.
fn truth(study: &Study<'_>) -> Result<Truth> {
    let place = (Engine::Remora, study.files.directory(), "whole");
    let node = Node::new(study.files, place, Share::all(study.rows, 1), Vec::new())?;
    node.load()?;
    let server = node.start(Threads::new(0))?;
    let truth = study.answers(&server, "p0")?;
    server.stop()?;
    Ok(truth)
}

impl Group {
    /// Loads and starts so many servers, with their data in these directories by turns.
    fn start(
        study: &Study<'_>,
        engine: Engine,
        (count, parts): (usize, usize),
        places: &[&Path],
    ) -> Result<Self> {
        let shares = Share::all(study.rows, count * parts);
        let (mut running, mut nodes) = (Vec::new(), Vec::new());
        for (number, own) in shares.chunks(parts.max(1)).enumerate() {
            let place = places.get(number % places.len().max(1)).context("no directory")?;
            let place = (engine, *place, &*format!("server-{number}"));
            let node = Node::new(study.files, place, own.to_vec(), Vec::new())?;
            node.load()?;
            running.push(node.start(Threads::new(threads(engine, parts)))?);
            nodes.push(node);
        }
        Ok(Self { engine, running, _nodes: nodes, parts })
    }

    /// A server over these servers' tables.
    fn front(
        &self,
        study: &Study<'_>,
        name: &str,
        others: Vec<(String, &'static str)>,
    ) -> Result<(Server, Node)> {
        let place = (self.engine, study.files.directory(), name);
        let node = Node::new(study.files, place, Vec::new(), others)?;
        Ok((node.start(Threads::new(0))?, node))
    }

    fn stop(self) -> Result<()> {
        self.running.into_iter().try_for_each(Server::stop)
    }

    /// Measures a server over all of them.
    fn measure(
        &self,
        study: &mut Study<'_>,
        front: &Server,
        (experiment, setting): (Experiment, &str),
        truth: &Truth,
    ) -> Result<()> {
        let servers = self.running.len();
        let name = format!("{servers} servers, {} parts each, {setting}", self.parts);
        study.check(self.engine, front, REMOTE, &name, truth)?;
        let parts = servers * self.parts;
        let (rows, clients) = (study.rows, CLIENTS);
        let point = Point { experiment, parts, servers, rows, index: REMOTE, clients, setting };
        study.measure(front, &point)
    }
}

/// The threads with which a server reads its parts at the same time.
fn threads(engine: Engine, parts: usize) -> usize {
    match engine {
        Engine::Remora => 0,
        Engine::Sphinx => parts,
    }
}

/// The servers' addresses, each with its table of all its parts.
fn tables(servers: &[Server]) -> Vec<(String, &'static str)> {
    servers.iter().map(|server| (server.agent_address(), LOCALS)).collect()
}

/// E5 with these servers and, with them, E4 and E8.
fn servers(
    study: &mut Study<'_>,
    engine: Engine,
    (count, parts): (usize, usize),
    truth: &Truth,
) -> Result<()> {
    let is_last = counts(&study.options.server_counts).last() == Some(&count);
    let is_e4 = study.has(Experiment::E4) && parts == PARTS_OF_E4 && is_last;
    let is_e8 = study.has(Experiment::E8) && parts == PARTS_OF_E8 && count > 1;
    if !(is_e4 || is_e8 || study.has(Experiment::E5)) {
        return Ok(());
    }
    eprintln!("{count} servers, {parts} parts each, {}", engine.name());
    let directory = study.files.directory();
    let group = Group::start(study, engine, (count, parts), &[directory])?;
    let (front, node) = group.front(study, "front", tables(&group.running))?;
    if study.has(Experiment::E5) {
        let setting = format!("{parts} parts each");
        group.measure(study, &front, (Experiment::E5, &setting), truth)?;
    }
    if is_e8 {
        group.measure(study, &front, (Experiment::E8, "one level"), truth)?;
    }
    front.stop()?;
    drop(node);
    if is_e8 {
        two_levels(study, &group, truth)?;
    }
    if is_e4 {
        for (number, server) in group.running.iter().enumerate() {
            let setting = format!("server {}", number + 1);
            let (experiment, rows, clients) = (Experiment::E4, study.rows / count, CLIENTS);
            let (servers, index) = (1, LOCALS);
            let setting = setting.as_str();
            let point = Point { experiment, parts, servers, rows, index, clients, setting };
            study.measure(server, &point)?;
        }
    }
    group.stop()
}

/// E8: about as many servers in the second level as each of them asks.
fn two_levels(study: &mut Study<'_>, group: &Group, truth: &Truth) -> Result<()> {
    let each = (group.running.len() as f64).sqrt().ceil() as usize;
    let mut middle = Vec::new();
    for (number, below) in group.running.chunks(each.max(1)).enumerate() {
        middle.push(group.front(study, &format!("middle-{number}"), tables(below))?);
    }
    let addresses = middle.iter().map(|(server, _)| (server.agent_address(), REMOTE)).collect();
    let (top, _node) = group.front(study, "top", addresses)?;
    group.measure(study, &top, (Experiment::E8, "two levels"), truth)?;
    top.stop()?;
    middle.into_iter().try_for_each(|(server, _)| server.stop())
}

/// Whether E6 can be run: there are directories on several devices.
fn has_disks(study: &mut Study<'_>) -> Result<bool> {
    if !study.has(Experiment::E6) {
        return Ok(false);
    }
    let mut devices = BTreeSet::new();
    for disk in &study.options.disks {
        let about = disk.metadata().with_context(|| format!("cannot read {}", disk.display()))?;
        devices.insert(about.dev());
    }
    if devices.len() < 2 {
        study.note(
            "E6 is left out: it needs directories on several disks, which --disks names. Those of one disk would show \
             nothing, and neither server reads much from disks once its data is cached."
                .to_owned(),
        );
    }
    Ok(devices.len() > 1)
}

/// E6: a server for each disk, with all data on the first one and then on its own.
fn disks(study: &mut Study<'_>, truth: &Truth) -> Result<()> {
    let disks = study.options.disks.clone();
    let all: Vec<&Path> = disks.iter().map(AsRef::as_ref).collect();
    for (setting, used) in [("one disk", &all[..1]), ("all disks", &all[..])] {
        for engine in study.engines.clone() {
            let group = Group::start(study, engine, (disks.len(), 1), used)?;
            let (front, _node) = group.front(study, "front", tables(&group.running))?;
            group.measure(study, &front, (Experiment::E6, setting), truth)?;
            front.stop()?;
            group.stop()?;
        }
    }
    Ok(())
}

fn charts(study: &mut Study<'_>) {
    let server = |it: &Measured| it.figures.server.to_owned();
    let count = |it: &Measured| it.servers.to_string();
    study.chart(
        Experiment::E4,
        ("E4: each server for itself, 4 parts, 4 clients", "server", "queries a second"),
        |it| (String::new(), server(it), it.figures.setting.replace("server ", "")),
        |it| it.per_second,
    );
    study.chart(
        Experiment::E5,
        ("E5: servers, processes of one machine, 4 clients", "servers", "queries a second"),
        |it| (server(it), it.figures.setting.clone(), count(it)),
        |it| it.per_second,
    );
    study.chart(
        Experiment::E6,
        ("E6: data on one disk and on all, 4 clients", "", "queries a second"),
        |it| (String::new(), server(it), it.figures.setting.clone()),
        |it| it.per_second,
    );
    study.chart(
        Experiment::E8,
        (
            "E8: one front server, or a second level, 2 parts a server, 4 clients",
            "servers",
            "mean time in ms",
        ),
        |it| (server(it), it.figures.setting.clone(), count(it)),
        |it| it.mean_us / 1e3,
    );
}
