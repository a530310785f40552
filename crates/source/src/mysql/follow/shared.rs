//! What the threads of one follower and its owner share.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use remora_engine::Database;

use super::{
    lost::Shown,
    status::{Board, State},
    words::WordsOrder,
};
use crate::mysql::{
    binlog::Interrupter,
    coordinates::Coordinates,
    inbox::{Inbox, Message},
    schema::Selection,
    settings::MysqlSettings,
    table_name::TableName,
};

/// Orders that wait; more are refused.
const MAX_ORDERS: usize = 4_096;

/// The common ground.
pub(crate) struct FollowState {
    pub database: Database,
    pub settings: MysqlSettings,
    pub selection: Selection,
    pub board: Board,
    /// Tables that are given up until someone asks for a copy, and why.
    pub given_up: Mutex<HashMap<TableName, String>>,
    /// Names here of tables that were given up because their rows are refused, until that is
    /// stored.
    pub refused: Mutex<HashSet<String>>,
    /// So many batches are submitted table by table.
    pub careful: AtomicU32,
    /// How often each table's rows could not be read.
    pub unreadable: Mutex<HashMap<TableName, u32>>,
    /// How often in a row the layout of a table's rows was not that of its definition.
    pub unfitting: Mutex<HashMap<TableName, u32>>,
    /// Where a table's rows could not be read last: up to there the stream is read again, and what it
    /// says of the table's definition mends nothing.
    pub failed_at: Mutex<HashMap<TableName, Coordinates>>,
    /// What the source showed last of its history.
    pub shown: Mutex<Option<Shown>>,
    /// Whether following ended because the position is lost: it can only begin anew.
    pub lost: AtomicBool,
    /// Held while definitions are made and committed, and while a session begins.
    pub defining: Mutex<()>,
    /// Numbers the orders of words.
    pub words_orders: AtomicU64,
    orders: Mutex<Orders>,
    changed: Condvar,
}

/// What the owner wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestedState {
    /// To follow.
    #[default]
    Run,
    /// Not to, for now.
    Stop,
    /// Never again.
    Close,
}

/// What the owner wants of tables.
#[derive(Clone, Debug)]
pub(crate) enum TableOrder {
    /// A new copy of the table of this name here.
    Sync(String),
    /// No copy of the table of this name, or of any.
    Cancel(Option<String>),
    /// Other words for a table.
    Words(WordsOrder),
}

#[derive(Default)]
struct Orders {
    wanted: RequestedState,
    tables: VecDeque<TableOrder>,
    /// Whether nothing runs and following waits to be wanted.
    at_rest: bool,
    inbox: Option<Arc<Inbox>>,
    interrupter: Option<Interrupter>,
}

impl FollowState {
    pub fn new(database: Database, settings: MysqlSettings) -> Self {
        let selection = Selection::of(&settings);
        Self {
            database,
            settings,
            selection,
            board: Board::default(),
            given_up: Mutex::default(),
            refused: Mutex::default(),
            careful: AtomicU32::new(0),
            unreadable: Mutex::default(),
            unfitting: Mutex::default(),
            failed_at: Mutex::default(),
            shown: Mutex::default(),
            lost: AtomicBool::new(false),
            defining: Mutex::default(),
            words_orders: AtomicU64::new(0),
            orders: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// A table is to be copied whatever happened to it before.
    pub fn forget_failures(&self, table: &TableName) {
        self.given_up.lock().remove(table);
        self.unreadable.lock().remove(table);
        self.unfitting.lock().remove(table);
        self.failed_at.lock().remove(table);
    }

    /// What the owner wants now.
    pub fn wanted(&self) -> RequestedState {
        self.orders.lock().wanted
    }

    /// Says what is wanted, and sees to it that everyone notices. Closing is for good.
    pub fn want(&self, wanted: RequestedState) {
        let mut orders = self.orders.lock();
        if orders.wanted != RequestedState::Close {
            orders.wanted = wanted;
        }
        if orders.wanted == RequestedState::Run {
            orders.at_rest = false;
            self.board.resume();
        }
        self.changed.notify_all();
        if let Some(inbox) = &orders.inbox {
            inbox.push(Message::Order);
        }
        let interrupter = orders.interrupter.clone().filter(|_| wanted != RequestedState::Run);
        drop(orders);
        if let Some(interrupter) = interrupter {
            interrupter.interrupt();
        }
    }

    /// Following cannot go on by itself: it stops, unless its owner wants something else already.
    pub fn fail(&self, reason: String) {
        let mut orders = self.orders.lock();
        if orders.wanted == RequestedState::Run {
            orders.wanted = RequestedState::Stop;
            self.board.set_state(State::Failed(reason));
        }
    }

    /// Waits until following is wanted; false if it never will be again. Nothing may run any more.
    pub fn wait_to_run(&self) -> bool {
        let mut orders = self.orders.lock();
        while orders.wanted == RequestedState::Stop {
            orders.at_rest = true;
            self.board.rest();
            self.changed.notify_all();
            self.changed.wait(&mut orders);
        }
        orders.at_rest = false;
        orders.wanted == RequestedState::Run
    }

    /// Waits until nothing runs any more, or following is wanted again; false if that takes longer.
    pub fn wait_for_rest(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut orders = self.orders.lock();
        while orders.wanted == RequestedState::Stop && !orders.at_rest {
            if self.changed.wait_until(&mut orders, deadline).timed_out() {
                return false;
            }
        }
        true
    }

    /// Waits so long, or until something else is wanted.
    pub fn pause(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let mut orders = self.orders.lock();
        while orders.wanted == RequestedState::Run {
            if self.changed.wait_until(&mut orders, deadline).timed_out() {
                return;
            }
        }
    }

    /// A session begins or ends: who is to be told of orders, and whose stream to end.
    pub fn set_session(&self, session: Option<(Arc<Inbox>, Interrupter)>) {
        let mut orders = self.orders.lock();
        let (inbox, interrupter) = session.unzip();
        (orders.inbox, orders.interrupter) = (inbox, interrupter);
    }

    /// Adds an order; false if too many wait.
    pub fn order(&self, order: TableOrder) -> bool {
        let mut orders = self.orders.lock();
        if orders.tables.len() >= MAX_ORDERS {
            return false;
        }
        orders.tables.push_back(order);
        if let Some(inbox) = &orders.inbox {
            inbox.push(Message::Order);
        }
        true
    }

    /// Whether a session runs, which obeys orders.
    pub fn has_session(&self) -> bool {
        self.orders.lock().inbox.is_some()
    }

    /// Takes back an order of words; false if it was taken already.
    pub fn withdraw_words(&self, number: u64) -> bool {
        let mut orders = self.orders.lock();
        let is_it =
            |order: &TableOrder| matches!(order, TableOrder::Words(one) if one.number == number);
        let place = orders.tables.iter().position(is_it);
        place.is_some_and(|place| orders.tables.remove(place).is_some())
    }

    /// The next order.
    pub fn next_order(&self) -> Option<TableOrder> {
        self.orders.lock().tables.pop_front()
    }

    /// The names of the tables that are to be copied anew and the first orders that say so.
    pub fn ordered_copies(&self) -> (HashSet<String>, usize) {
        let orders = self.orders.lock();
        let copies = orders.tables.iter().map_while(|order| match order {
            TableOrder::Sync(name) => Some(name.clone()),
            TableOrder::Cancel(_) | TableOrder::Words(_) => None,
        });
        let names: Vec<_> = copies.collect();
        let count = names.len();
        (names.into_iter().collect(), count)
    }

    /// So many of the first orders were obeyed.
    pub fn drop_orders(&self, count: usize) {
        let mut orders = self.orders.lock();
        let count = count.min(orders.tables.len());
        orders.tables.drain(..count);
    }

    /// Events that wait to be applied.
    pub fn queue_length(&self) -> usize {
        self.orders.lock().inbox.as_ref().map_or(0, |inbox| inbox.len())
    }
}
