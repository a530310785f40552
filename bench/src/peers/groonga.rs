//! Groonga over its pipe: TokenBigramSplitSymbolAlphaDigit and NormalizerAuto, which together
//! answer substring queries; the query cache is off.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, bail};
use remora_engine::TextQuery;
use serde_json::{Value, json};

use super::{Load, Peer, Syntax, cached};
use crate::{
    corpus::Corpus,
    measure::{MeasuredProcess, Once},
    oracle::NEWEST,
};

/// Rows of one `load` command.
const ROWS_PER_LOAD: usize = 1_000;

/// A running Groonga with the corpus.
pub struct Groonga {
    pipe: Pipe,
    name: String,
}

impl Groonga {
    /// Starts Groonga over this corpus.
    pub fn open(corpus: &Corpus) -> Result<(Load, Self)> {
        let (directory, load) = cached(corpus, "groonga", |directory| fill(directory, corpus))?;
        let mut pipe = Pipe::open(&directory.join("rows"), false)?;
        pipe.command("cache_limit 0")?;
        let status = pipe.command("status")?;
        let version = status.get("version").and_then(Value::as_str).unwrap_or("?");
        let name = format!("Groonga {version} bigram");
        Ok((load, Self { pipe, name }))
    }

    fn select(&mut self, query: &TextQuery, output: &str) -> Result<Vec<Value>> {
        let syntax = Syntax { term: &match_operator, and: " && ", or: " || ", not: "!" };
        let filter = quoted(&syntax.render(query));
        let reply = self.pipe.command(&format!("select Rows --filter {filter} {output}"))?;
        reply.pointer("/0").and_then(Value::as_array).cloned().context("Groonga: not a result")
    }
}

impl Peer for Groonga {
    fn name(&self) -> &str {
        &self.name
    }

    fn in_process(&self) -> bool {
        false
    }

    fn processor(&self) -> MeasuredProcess {
        MeasuredProcess::Of(self.pipe.process.id())
    }

    fn search(&mut self, query: &TextQuery) -> Result<Vec<u64>> {
        let output = format!("--output_columns number --sort_keys -_id --limit {NEWEST}");
        let result = self.select(query, &output)?;
        // [[count], [[column, type]], [number], [number] …]
        Ok(result.iter().skip(2).filter_map(|row| row.pointer("/0")?.as_u64()).collect())
    }

    fn count(&mut self, query: &TextQuery) -> Result<u64> {
        let result = self.select(query, "--output_columns number --limit 0")?;
        let count = result.first().and_then(|count| count.pointer("/0")?.as_u64());
        count.context("Groonga: no count in the result")
    }
}

/// A `groonga` process that reads commands from its standard input.
struct Pipe {
    process: Child,
    commands: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Pipe {
    fn open(database: &Path, is_new: bool) -> Result<Self> {
        let mut command = Command::new("groonga");
        if is_new {
            command.arg("-n");
        }
        let mut process = command
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start groonga; bench/scripts/groonga installs it")?;
        let commands = process.stdin.take().context("no pipe to groonga")?;
        let replies = BufReader::new(process.stdout.take().context("no pipe from groonga")?);
        Ok(Self { process, commands, replies })
    }

    /// Sends one command, which may include lines of data, and returns the reply's body.
    fn command(&mut self, command: &str) -> Result<Value> {
        self.commands.write_all(command.as_bytes())?;
        self.commands.write_all(b"\n")?;
        self.commands.flush()?;
        let mut reply = String::new();
        self.replies.read_line(&mut reply)?;
        // [[status, start, seconds, message…], body]
        let mut reply: Value = serde_json::from_str(&reply)
            .with_context(|| format!("Groonga ended or sent no JSON: {reply:?}"))?;
        if reply.pointer("/0/0").and_then(Value::as_i64) != Some(0) {
            bail!("Groonga refused {}: {reply}", command.chars().take(200).collect::<String>());
        }
        Ok(reply.get_mut(1).map(Value::take).unwrap_or_default())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // Errors do not matter: the child process has ended or will be killed.
        let _ = self.commands.write_all(b"shutdown\n");
        let _ = self.commands.flush();
        let _ = self.replies.read_line(&mut String::new());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn fill(directory: &Path, corpus: &Corpus) -> Result<Once> {
    let mut pipe = Pipe::open(&directory.join("rows"), true)?;
    let processor = MeasuredProcess::Of(pipe.process.id());
    let (_, once) = crate::measure::once(processor, || {
        pipe.command("table_create Rows TABLE_NO_KEY")?;
        pipe.command("column_create Rows number COLUMN_SCALAR UInt64")?;
        pipe.command("column_create Rows body COLUMN_SCALAR LongText")?;
        for (rows, texts) in
            corpus.documents.chunks(ROWS_PER_LOAD).zip(corpus.texts.chunks(ROWS_PER_LOAD))
        {
            let rows = rows.iter().zip(texts);
            let rows: Vec<Value> =
                rows.map(|(row, text)| json!({"number": row.id, "body": text})).collect();
            pipe.command(&format!("load --table Rows\n{}", serde_json::to_string(&rows)?))?;
        }
        pipe.command(
            "table_create Atoms TABLE_PAT_KEY ShortText \
             --default_tokenizer TokenBigramSplitSymbolAlphaDigit --normalizer NormalizerAuto",
        )?;
        // The index is created after the rows, so that it is built in one pass.
        pipe.command("column_create Atoms rows COLUMN_INDEX|WITH_POSITION Rows body")?;
        pipe.command("io_flush")
    })?;
    Ok(once)
}

fn match_operator(term: &str) -> String {
    format!("body @ {}", quoted(term))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_filters() {
        let term = |text: &str| TextQuery::Term(text.into());
        let query = TextQuery::And(vec![
            term("a\"b"),
            TextQuery::Not(Box::new(TextQuery::Or(vec![term("c"), term("d")]))),
        ]);
        let syntax = Syntax { term: &match_operator, and: " && ", or: " || ", not: "!" };
        assert_eq!(syntax.render(&query), "(body @ \"a\\\"b\" && !(body @ \"c\" || body @ \"d\"))");
    }
}
