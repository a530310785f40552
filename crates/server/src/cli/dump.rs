//! `remora dump`: dumps of a data directory that no server has open.

use std::{path::Path, process::ExitCode, sync::atomic::AtomicBool};

use remora_engine::{Database, dump::DumpInfo};
use remora_protocol::line::reply::human_bytes;

use super::{DumpCommand, output::counted};
use crate::{
    Result,
    dump::{load_dump, refuse_half_loaded},
    open::{claim, open_with_collations},
    settings::Settings,
};

/// Runs the command.
///
/// # Errors
/// [`crate::Error::Usage`] if there is no data directory to save, [`crate::Error::Settings`] if a load of a dump was
/// interrupted, [`crate::Error::Engine`] if the dump or the data directory cannot be read or written.
pub fn dump(command: &DumpCommand) -> Result<ExitCode> {
    match command {
        DumpCommand::Save { data, file } => save(data, file)?,
        DumpCommand::Load { data, file } => load(data, file)?,
        DumpCommand::Info { file } => print!("{}", describe(&remora_engine::dump::info(file)?)),
        DumpCommand::Verify { file } => {
            let info = remora_engine::dump::verify(file)?;
            println!("{} is whole: {}.", file.display(), counted(info.rows, "row"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn open(data: &Path) -> Result<Database> {
    let settings = Settings { data: data.to_owned(), ..Settings::default() };
    claim(data, &[])?;
    Ok(open_with_collations(data, settings.engine_options())?)
}

fn save(data: &Path, file: &Path) -> Result<()> {
    super::require_data_directory(data)?;
    refuse_half_loaded(data)?;
    let database = open(data)?;
    let saved = database.dump(&[], file, &mut |_| {}, &AtomicBool::new(false));
    database.close()?;
    let info = saved?;
    println!("{} into {}", counted(info.rows, "row"), file.display());
    Ok(())
}

fn load(data: &Path, file: &Path) -> Result<()> {
    // Checked before a data directory is created.
    remora_engine::dump::info(file)?;
    let database = open(data)?;
    let loaded = load_dump(&database, file);
    database.close()?;
    let info = loaded?;
    println!("{} into {}", counted(info.rows, "row"), data.display());
    Ok(())
}

fn describe(info: &DumpInfo) -> String {
    let taken = jiff::Timestamp::from_microsecond(info.meta.created_micros);
    let mut text = format!(
        "taken     {}\nposition  {}\nsize      {} ({} before compression)\n",
        taken.map_or("unknown".to_owned(), |taken| taken.strftime("%F %T UTC").to_string()),
        info.meta.position,
        human_bytes(info.file_bytes),
        human_bytes(info.row_bytes),
    );
    // Counters of collections are stored as positions but are not sources.
    let sources = info.meta.sources.iter().filter(|(name, _)| !name.starts_with('#'));
    for (name, position) in sources {
        text.push_str(&format!("source    {name} at {position}\n"));
    }
    for table in &info.tables {
        text.push_str(&format!("table     {} ({})\n", table.name, counted(table.rows, "row")));
    }
    text
}
