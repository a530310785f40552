//! DUMP: the execution and output of its commands.

use remora_protocol::line::{Dump, reply};

use super::Session;
use crate::{
    dump,
    requests::{Answer, blocking},
    settings::Settings,
    shared::Trigger,
};

impl Session {
    pub(super) fn dump(&self, command: &Dump, settings: &Settings, out: &mut Vec<u8>) -> Answer {
        let dir = &settings.dump.dir;
        match command {
            Dump::Save(file) => {
                let name = file.as_deref().unwrap_or(&settings.dump.default_filename);
                let path = dump::resolve(dir, name)?;
                dump::require_positions(&self.caller.shared)?;
                dump::start_saving(&self.caller.shared, path.clone(), Trigger::Asked)?;
                reply::write_dump_started(out, &path.display().to_string());
            }
            Dump::Load(file) => {
                let path = dump::resolve_existing(dir, file)?;
                blocking(|| {
                    dump::without_sources(&self.caller.shared, || {
                        dump::load(&self.caller.shared, &path)
                    })
                })?;
                reply::write_dump_loaded(out, &path.display().to_string());
            }
            Dump::Verify(file) => {
                let path = dump::resolve_existing(dir, file)?;
                blocking(|| remora_engine::dump::verify(&path))?;
                reply::write_dump_verified(out, &path.display().to_string());
            }
            Dump::Info(file) => {
                let path = dump::resolve_existing(dir, file)?;
                let info = blocking(|| remora_engine::dump::info(&path))?;
                reply::write_dump_info(out, &path.display().to_string(), &dump_info(&info));
            }
            Dump::Status => reply::write_dump_status(out, &self.caller.shared.dump.report()),
        }
        Ok(())
    }
}

fn dump_info(info: &remora_engine::dump::DumpInfo) -> reply::DumpInfo {
    // Names with a slash are details of a source, those with # counters of collections.
    let is_source = |name: &str| !name.contains('/') && !name.starts_with('#');
    let sources: Vec<_> = info.meta.sources.iter().filter(|(name, _)| is_source(name)).collect();
    let gtid = match sources.as_slice() {
        [(_, position)] => (*position).clone(),
        all => {
            let shown = all.iter().map(|(name, position)| format!("{name}={position}"));
            shown.collect::<Vec<_>>().join(" ")
        }
    };
    reply::DumpInfo {
        version: 1,
        gtid,
        tables: info.tables.len() as u64,
        flags: 0,
        file_size: info.file_bytes,
        timestamp: u64::try_from(info.meta.created_micros / 1_000_000).unwrap_or(0),
        has_statistics: true,
    }
}
