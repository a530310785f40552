//! Answers requests of SphinxAPI.

use std::sync::Arc;

use remora_protocol::sphinx::{
    Answer, ExcerptRequest, Found, Keyword, KeywordsRequest, Request, RequestHead, SearchRequest,
    UpdateRequest, put_error, put_excerpts, put_flushed, put_keywords, put_ping, put_search,
    put_status, put_updated,
    statement::{excerpts, keywords, updates},
};
use remora_sql::{Cell, Column, Identity};

use super::{
    rows::{MAX_BYTES, Rows},
    search, table,
    values::{text, whole},
};
use crate::mysql::{Guest, SqlSide};

/// The message for an unknown index in an update.
const UNKNOWN: &str = "unknown index '?' in update request";

/// One client's session.
pub(super) struct Talk {
    guest: Guest,
    identity: Identity,
    /// Whether the connection stays open after a reply.
    stays: bool,
    /// The result of the last search, without its rows.
    last: Option<Answer>,
    /// Whether the session was set up for this protocol's texts.
    is_settled: bool,
}

/// The error message for a request.
type Refused = String;

impl Talk {
    /// The session of a client with this identity.
    pub(super) fn new(mut guest: Guest, identity: Identity) -> Self {
        // An update reports the rows that it found, changed or not.
        guest.session().count_found_rows(true);
        Self { guest, identity, stays: false, last: None, is_settled: false }
    }

    /// The SQL side.
    pub(super) fn side(&self) -> &Arc<SqlSide> {
        self.guest.side()
    }

    /// Waits until another connection kills this one.
    pub(super) fn killed(&self) -> impl Future<Output = ()> + use<> {
        self.guest.killed()
    }

    /// Whether the connection stays open after a reply.
    pub(super) fn stays(&self) -> bool {
        self.stays
    }

    /// Makes the connection end after the next reply.
    pub(super) fn leave(&mut self) {
        self.stays = false;
    }

    /// Appends the reply to a request.
    pub(super) async fn answer(&mut self, head: &RequestHead, body: &[u8], out: &mut Vec<u8>) {
        self.guest.begin_request();
        if !self.is_settled {
            let mut reply = Rows::new(self.guest.interrupter(), |_, _| ((), 0));
            if let Err(error) = self.guest.settle(&mut reply).await {
                put_error(out, &error.message);
                return;
            }
            self.is_settled = true;
        }
        let done = match Request::parse(head, body) {
            Ok(request) => self.try_answer(request, out).await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(message) = done {
            put_error(out, &message);
        }
    }

    async fn try_answer(&mut self, request: Request<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        match request {
            Request::Search(request) => self.search(&request, out).await,
            Request::Excerpt(request) => return self.excerpt(&request, out).await,
            Request::Update(request) => return self.update(&request, out).await,
            Request::Keywords(request) => return self.keywords(&request, out).await,
            Request::Persist(stays) => self.stays = stays,
            Request::Status { of_server } => put_status(out, &self.figures(of_server)),
            Request::FlushAttributes => put_flushed(out, 0),
            Request::Ping(cookie) => put_ping(out, cookie),
        }
        Ok(())
    }

    async fn search(&mut self, request: &SearchRequest<'_>, out: &mut Vec<u8>) {
        let mut answers = Vec::with_capacity(request.queries.len());
        // The memory for all queries of a request.
        let mut room = MAX_BYTES;
        for query in &request.queries {
            answers.push(search::answer(&mut self.guest, &self.identity, query, &mut room).await);
        }
        put_search(out, request.version, &answers);
        self.last = answers.pop().map(without_rows);
    }

    async fn excerpt(
        &mut self,
        request: &ExcerptRequest<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let (guest, identity) = (&mut self.guest, &self.identity);
        let shape = table::find(guest, identity, &request.index, search::UNKNOWN).await?;
        let statement = excerpts(request, &shape).map_err(|error| error.to_string())?;
        let convert = |_: &[Column], cells: &[Cell<'_>]| {
            let excerpt = cells.first().map_or_else(String::new, |cell| text(*cell).into_owned());
            let bytes = excerpt.len();
            (excerpt, bytes)
        };
        let mut reply = Rows::new(self.guest.interrupter(), convert);
        self.guest.run(&statement, &mut reply).await.map_err(|error| error.message)?;
        put_excerpts(out, &reply.rows);
        Ok(())
    }

    async fn keywords(
        &mut self,
        request: &KeywordsRequest<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let (guest, identity) = (&mut self.guest, &self.identity);
        let shape = table::find(guest, identity, &request.index, search::UNKNOWN).await?;
        let mut reply = Rows::new(self.guest.interrupter(), keyword);
        let statement = keywords(request, &shape);
        self.guest.run(&statement, &mut reply).await.map_err(|error| error.message)?;
        put_keywords(out, request.with_numbers, &reply.rows);
        Ok(())
    }

    /// Changes all rows or none.
    async fn update(
        &mut self,
        request: &UpdateRequest<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let (guest, identity) = (&mut self.guest, &self.identity);
        let shape = table::find(guest, identity, &request.indexes, UNKNOWN).await?;
        let statements = updates(request, &shape).map_err(|error| error.to_string())?;
        let updated = match &*statements {
            [] => 0,
            statements => self.change(statements).await?,
        };
        put_updated(out, "", u32::try_from(updated).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Runs statements as one transaction and returns how many rows they found.
    async fn change(&mut self, statements: &[String]) -> Result<u64, Refused> {
        self.run("START TRANSACTION").await?;
        let mut updated = 0;
        for statement in statements {
            match self.run(statement).await {
                Ok(rows) => updated += rows,
                Err(error) => return self.take_back(error).await,
            }
        }
        match self.run("COMMIT").await {
            Ok(_) => Ok(updated),
            Err(error) => self.take_back(error).await,
        }
    }

    /// Rolls a transaction back, even if the request's time is up or it was killed.
    async fn take_back<T>(&mut self, why: Refused) -> Result<T, Refused> {
        self.guest.begin_request();
        self.run("ROLLBACK").await?;
        Err(why)
    }

    /// Runs a statement without result rows and returns how many rows it found.
    async fn run(&mut self, statement: &str) -> Result<u64, Refused> {
        let mut reply = Rows::new(self.guest.interrupter(), |_, _| ((), 0));
        self.guest.run(statement, &mut reply).await.map_err(|error| error.message)?;
        Ok(reply.affected)
    }

    /// Statistics of the server, or of the last search of this connection.
    fn figures(&self, of_server: bool) -> Vec<(String, String)> {
        let figure = |(name, value): (&str, u64)| (name.to_owned(), value.to_string());
        if of_server {
            let [uptime, connections, queries] = self.side().figures();
            let figures = [("uptime", uptime), ("connections", connections), ("queries", queries)];
            return figures.map(figure).into();
        }
        let found = match &self.last {
            None => return Vec::new(),
            Some(Answer::Error(error)) => return vec![("error".to_owned(), error.clone())],
            Some(Answer::Found { found, .. }) => found,
        };
        let mut figures: Vec<_> = [("total", found.total), ("total_found", found.total_found)]
            .map(|(name, value)| figure((name, value.into())))
            .into();
        let seconds = f64::from(found.milliseconds) / 1000.0;
        figures.push(("time".to_owned(), format!("{seconds:.3}")));
        for (number, word) in found.words.iter().enumerate() {
            figures.push((format!("keyword[{number}]"), word.word.clone()));
            figures.push((format!("docs[{number}]"), word.documents.to_string()));
            figures.push((format!("hits[{number}]"), word.hits.to_string()));
        }
        figures
    }
}

fn without_rows(answer: Answer) -> Answer {
    match answer {
        Answer::Found { warning, found } => {
            let found = Found { matches: Vec::new(), ..found };
            Answer::Found { warning, found }
        }
        error => error,
    }
}

/// A row of CALL KEYWORDS, by its column names.
fn keyword(columns: &[Column], cells: &[Cell<'_>]) -> (Keyword, usize) {
    let mut keyword = Keyword::default();
    for (column, cell) in columns.iter().zip(cells) {
        let number = || u32::try_from(whole(*cell)).unwrap_or(u32::MAX);
        match &*column.name {
            "tokenized" => keyword.tokenized = text(*cell).into_owned(),
            "normalized" => keyword.normalized = text(*cell).into_owned(),
            "docs" => keyword.documents = number(),
            "hits" => keyword.hits = number(),
            _ => {}
        }
    }
    let bytes = keyword.tokenized.len() + keyword.normalized.len();
    (keyword, bytes)
}
