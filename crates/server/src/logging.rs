//! Log lines: level and format can be changed while the server runs.

use std::{fs::File, io::IsTerminal, sync::Mutex};

use tracing_subscriber::{
    EnvFilter, Registry,
    fmt::{self, writer::BoxMakeWriter},
    layer::{Layer, SubscriberExt},
    reload,
    util::SubscriberInitExt,
};

use crate::{Error, Result, settings::Logging};

type Output = Box<dyn Layer<Registry> + Send + Sync>;

/// The handle of the process's log output.
#[derive(Clone)]
pub struct LogHandle {
    output: reload::Handle<Output, Registry>,
}

impl LogHandle {
    /// Installs the log output of this process. An earlier one stays in force.
    pub fn install(settings: &Logging) -> Result<Self> {
        let (layer, output) = reload::Layer::new(layer(settings)?);
        if tracing_subscriber::registry().with(layer).try_init().is_err() {
            tracing::debug!("a log output is already installed and stays");
        }
        Ok(Self { output })
    }

    /// Takes over a new level, format or file.
    pub fn apply(&self, settings: &Logging) -> Result<()> {
        let layer = layer(settings)?;
        if self.output.reload(layer).is_err() {
            tracing::debug!("the log output of this process belongs to another server");
        }
        Ok(())
    }
}

/// The output that the settings describe.
fn layer(settings: &Logging) -> Result<Output> {
    let filter = EnvFilter::new(format!("{0},fjall=warn,lsm_tree=warn", settings.level));
    let filter = if settings.level == "off" { EnvFilter::new("off") } else { filter };
    let (writer, colours) = match &settings.file {
        None => (BoxMakeWriter::new(std::io::stderr), std::io::stderr().is_terminal()),
        Some(path) => {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(|source| Error::io("cannot write the log", path, source))?;
            (BoxMakeWriter::new(Mutex::new(file)), false)
        }
    };
    let layer = fmt::layer().with_writer(writer).with_ansi(colours).with_target(false);
    Ok(match settings.format.as_str() {
        "json" => layer.json().with_filter(filter).boxed(),
        _ => layer.with_filter(filter).boxed(),
    })
}
