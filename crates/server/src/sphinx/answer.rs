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
    values::{integer, text},
};
use crate::mysql::{SqlClient, SqlService};

/// The message for an unknown index in an update.
const UNKNOWN_INDEX: &str = "unknown index '?' in update request";

/// One client's session.
pub(super) struct Session {
    client: SqlClient,
    identity: Identity,
    /// Whether the connection stays open after a reply.
    is_persistent: bool,
    /// The result of the last search, without its rows.
    last: Option<Answer>,
    /// Whether the session was set up for this protocol's texts.
    is_set_up: bool,
}

/// The error message for a request.
type ErrorMessage = String;

impl Session {
    /// The session of a client with this identity.
    pub(super) fn new(mut client: SqlClient, identity: Identity) -> Self {
        // An update reports the rows that it found, changed or not.
        client.session().count_found_rows(true);
        Self { client, identity, is_persistent: false, last: None, is_set_up: false }
    }

    /// The SQL service.
    pub(super) fn service(&self) -> &Arc<SqlService> {
        self.client.service()
    }

    /// Waits until another connection kills this one.
    pub(super) fn killed(&self) -> impl Future<Output = ()> + use<> {
        self.client.killed()
    }

    /// Whether the connection stays open after a reply.
    pub(super) fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// Makes the connection end after the next reply.
    pub(super) fn close_after_reply(&mut self) {
        self.is_persistent = false;
    }

    /// Appends the reply to a request.
    pub(super) async fn answer(&mut self, head: &RequestHead, body: &[u8], out: &mut Vec<u8>) {
        self.client.begin_request();
        if !self.is_set_up {
            let mut reply = Rows::new(self.client.interrupter(), |_, _| ((), 0));
            if let Err(error) = self.client.set_session_variables(&mut reply).await {
                put_error(out, &error.message);
                return;
            }
            self.is_set_up = true;
        }
        let done = match Request::parse(head, body) {
            Ok(request) => self.try_answer(request, out).await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(message) = done {
            put_error(out, &message);
        }
    }

    async fn try_answer(
        &mut self,
        request: Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorMessage> {
        match request {
            Request::Search(request) => self.search(&request, out).await,
            Request::Excerpt(request) => return self.excerpt(&request, out).await,
            Request::Update(request) => return self.update(&request, out).await,
            Request::Keywords(request) => return self.keywords(&request, out).await,
            Request::Persist(is_persistent) => self.is_persistent = is_persistent,
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
            answers.push(search::answer(&mut self.client, &self.identity, query, &mut room).await);
        }
        put_search(out, request.version, &answers);
        self.last = answers.pop().map(without_rows);
    }

    async fn excerpt(
        &mut self,
        request: &ExcerptRequest<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorMessage> {
        let (client, identity) = (&mut self.client, &self.identity);
        let shape = table::find(client, identity, &request.index, search::UNKNOWN_INDEX).await?;
        let statement = excerpts(request, &shape).map_err(|error| error.to_string())?;
        let convert = |_: &[Column], cells: &[Cell<'_>]| {
            let excerpt = cells.first().map_or_else(String::new, |cell| text(*cell).into_owned());
            let bytes = excerpt.len();
            (excerpt, bytes)
        };
        let mut reply = Rows::new(self.client.interrupter(), convert);
        self.client.run(&statement, &mut reply).await.map_err(|error| error.message)?;
        put_excerpts(out, &reply.rows);
        Ok(())
    }

    async fn keywords(
        &mut self,
        request: &KeywordsRequest<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorMessage> {
        let (client, identity) = (&mut self.client, &self.identity);
        let shape = table::find(client, identity, &request.index, search::UNKNOWN_INDEX).await?;
        let mut reply = Rows::new(self.client.interrupter(), keyword);
        let statement = keywords(request, &shape);
        self.client.run(&statement, &mut reply).await.map_err(|error| error.message)?;
        put_keywords(out, request.with_numbers, &reply.rows);
        Ok(())
    }

    /// Changes all rows or none.
    async fn update(
        &mut self,
        request: &UpdateRequest<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorMessage> {
        let (client, identity) = (&mut self.client, &self.identity);
        let shape = table::find(client, identity, &request.indexes, UNKNOWN_INDEX).await?;
        let statements = updates(request, &shape).map_err(|error| error.to_string())?;
        let updated = match &*statements {
            [] => 0,
            statements => self.change(statements).await?,
        };
        put_updated(out, "", u32::try_from(updated).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Runs statements as one transaction and returns how many rows they found.
    async fn change(&mut self, statements: &[String]) -> Result<u64, ErrorMessage> {
        self.run("START TRANSACTION").await?;
        let mut updated = 0;
        for statement in statements {
            match self.run(statement).await {
                Ok(rows) => updated += rows,
                Err(error) => return self.rollback(error).await,
            }
        }
        match self.run("COMMIT").await {
            Ok(_) => Ok(updated),
            Err(error) => self.rollback(error).await,
        }
    }

    /// Rolls a transaction back, even if the request's time is up or it was killed.
    async fn rollback<T>(&mut self, why: ErrorMessage) -> Result<T, ErrorMessage> {
        self.client.begin_request();
        self.run("ROLLBACK").await?;
        Err(why)
    }

    /// Runs a statement without result rows and returns how many rows it found.
    async fn run(&mut self, statement: &str) -> Result<u64, ErrorMessage> {
        let mut reply = Rows::new(self.client.interrupter(), |_, _| ((), 0));
        self.client.run(statement, &mut reply).await.map_err(|error| error.message)?;
        Ok(reply.affected)
    }

    /// Statistics of the server, or of the last search of this connection.
    fn figures(&self, of_server: bool) -> Vec<(String, String)> {
        let figure = |(name, value): (&str, u64)| (name.to_owned(), value.to_string());
        if of_server {
            let [uptime, connections, queries] = self.service().figures();
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
        let number = || u32::try_from(integer(*cell)).unwrap_or(u32::MAX);
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
