//! A request's body, by its command.

use super::{
    Command, ExcerptRequest, KeywordsRequest, RequestError, RequestHead, SearchRequest,
    UpdateRequest, encode::Fields,
};

/// A request, borrowed from its bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Request<'a> {
    /// Search.
    Search(SearchRequest<'a>),
    /// Mark words in texts.
    Excerpt(ExcerptRequest<'a>),
    /// Change attributes.
    Update(UpdateRequest<'a>),
    /// Tell the words of a text.
    Keywords(KeywordsRequest<'a>),
    /// Whether the connection stays after a reply. Has no reply.
    Persist(bool),
    /// Figures of the server, or else of the last search.
    Status {
        /// Whether those of the server.
        of_server: bool,
    },
    /// Write changed attributes to disk.
    FlushAttributes,
    /// Send this number back.
    Ping(u32),
}

impl<'a> Request<'a> {
    /// Reads the body that follows a head. Numbers that PERSIST, status and ping lack are 0, and bytes behind
    /// the last field are passed over, as `searchd` does.
    ///
    /// # Errors
    /// Why the request is refused; its text is the reply's.
    pub fn parse(head: &RequestHead, body: &'a [u8]) -> Result<Self, RequestError> {
        let RequestHead { command, version, .. } = *head;
        let mut fields = Fields::new(body);
        if command == Command::Persist {
            return Ok(Self::Persist(fields.flag().unwrap_or_default()));
        }
        command.check_version(version)?;
        Ok(match command {
            Command::Search => Self::Search(SearchRequest::read(version, &mut fields)?),
            Command::Excerpt => Self::Excerpt(ExcerptRequest::read(version, &mut fields)?),
            Command::Update => Self::Update(UpdateRequest::read(version, &mut fields)?),
            Command::Keywords => Self::Keywords(KeywordsRequest::read(&mut fields)?),
            Command::Persist => Self::Persist(fields.flag().unwrap_or_default()),
            Command::Status => Self::Status { of_server: fields.flag().unwrap_or_default() },
            Command::FlushAttributes => Self::FlushAttributes,
            Command::Ping => Self::Ping(fields.u32().unwrap_or_default()),
            Command::Unanswered(name) => return Err(RequestError::UnansweredCommand(name)),
        })
    }
}
