//! Both engines over the same corpora with the same queries.

use std::{cell::RefCell, io, rc::Rc};

use super::{
    client::Client,
    compare::{self, Difference, Kind},
    corpus::Corpus,
    engine::{Engine, Found, Make, Options},
    known::{self, Asked},
    server::{Index, Server},
};

/// One query.
#[derive(Clone)]
pub struct Case {
    pub corpus: Rc<Corpus>,
    pub query: String,
    pub options: Options,
}

/// The outcome of a query.
pub enum Verdict {
    /// Both found as many rows, or both refused.
    Same(Option<u64>),
    Different(Difference),
    /// Different, in a known case of this name.
    Known(&'static str),
    /// Sphinx crashed, as it does for some queries.
    Unanswered,
    /// Sphinx would write behind its arrays, so it was not queried.
    Undefined,
}

/// A server and a connection to it.
pub struct Sphinx {
    server: Server,
    client: Client,
}

impl Sphinx {
    pub fn start(indexes: &[Index]) -> Self {
        let server = Server::start(indexes);
        let client = server.connect().unwrap();
        Self { server, client }
    }

    /// The answer of index number n without its name; restarts the server after a crash.
    pub fn search(
        &mut self,
        number: usize,
        query: &str,
        options: &Options,
    ) -> io::Result<Result<Found, String>> {
        let name = Server::name(number);
        match self.client.search(&name, query, options) {
            Ok(answer) => {
                let prefix = format!("index {name}: ");
                let bare = |text: String| text.strip_prefix(&prefix).unwrap_or(&text).to_owned();
                Ok(answer.map_err(bare))
            }
            Err(error) => {
                self.server.restart();
                self.client = self.server.connect()?;
                Err(error)
            }
        }
    }

    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// Both sides over some corpora.
pub struct Trial {
    corpora: Vec<Rc<Corpus>>,
    sphinx: RefCell<Sphinx>,
    engines: Vec<Box<dyn Engine>>,
}

impl Trial {
    pub fn new(corpora: Vec<Rc<Corpus>>, make: &Make) -> Self {
        let index = |corpus: &Rc<Corpus>| Index { corpus: Rc::clone(corpus), shards: 1 };
        let indexes: Vec<Index> = corpora.iter().map(index).collect();
        let sphinx = RefCell::new(Sphinx::start(&indexes));
        let engines = make(&corpora);
        Self { corpora, sphinx, engines }
    }

    pub fn corpora(&self) -> &[Rc<Corpus>] {
        &self.corpora
    }

    /// Whether this trial has the corpora of all cases.
    pub fn knows(&self, cases: &[Case]) -> bool {
        cases.iter().all(|case| self.number(case).is_some())
    }

    fn number(&self, case: &Case) -> Option<usize> {
        self.corpora.iter().position(|corpus| Rc::ptr_eq(corpus, &case.corpus))
    }

    pub fn verdict(&self, case: &Case) -> Verdict {
        let number = self.number(case).unwrap();
        let Case { corpus, query, options } = case;
        if let Err(text) = self.engines[number].check(query, options) {
            let kinds = vec![Kind::Own];
            return Verdict::Different(Difference { kind: Kind::Own, kinds, rows: 0, text });
        }
        if known::crashes(query) {
            return Verdict::Undefined;
        }
        let Ok(theirs) = self.sphinx.borrow_mut().search(number, query, options) else {
            return Verdict::Unanswered;
        };
        let ours = self.engines[number].search(query, options);
        let tolerated = compare::tolerated(corpus, query);
        match compare::difference(query, &theirs, &ours, tolerated) {
            None => Verdict::Same(theirs.ok().map(|found| found.total_found)),
            Some(difference) => {
                let asked = Asked::new(corpus, query, options, &theirs, &ours);
                match known::case(&asked, &difference) {
                    Some(case) => Verdict::Known(case),
                    None => Verdict::Different(difference),
                }
            }
        }
    }
}
