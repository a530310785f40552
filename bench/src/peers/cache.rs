//! Loaded corpora, kept between runs so that later runs start faster.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use remora_peers::cache_directory;

use super::Load;
use crate::{
    corpus::Corpus,
    measure::{Once, directory_bytes},
};

/// A peer's directory for this corpus, loaded by `load` unless an earlier run did.
pub fn cached(
    corpus: &Corpus,
    peer: &str,
    load: impl FnOnce(&Path) -> Result<Once>,
) -> Result<(PathBuf, Load)> {
    let rows = format!("rows-{}-{:016x}", corpus.documents.len(), fingerprint(corpus));
    let directory = cache_directory()?.join(rows).join(peer);
    let figures = directory.with_extension("json");
    if let Ok(text) = std::fs::read(&figures) {
        return Ok((directory, serde_json::from_slice(&text)?));
    }
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    eprintln!("loading {} rows into {peer}", corpus.documents.len());
    let once = load(&directory).with_context(|| format!("cannot load {peer}"))?;
    let disk_bytes = directory_bytes(&directory)?;
    let load = Load { wall_s: once.wall_s, cpu_s: once.cpu_s, disk_bytes };
    std::fs::write(&figures, serde_json::to_vec(&load)?)?;
    Ok((directory, load))
}

/// FNV-1a over ids, lengths and every 97th text: enough to distinguish corpora and normalisations.
fn fingerprint(corpus: &Corpus) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut feed = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for (number, (document, text)) in corpus.documents.iter().zip(&corpus.texts).enumerate() {
        document.id.to_le_bytes().into_iter().for_each(&mut feed);
        (text.len() as u64).to_le_bytes().into_iter().for_each(&mut feed);
        if number % 97 == 0 {
            text.bytes().for_each(&mut feed);
        }
    }
    hash
}
