//! What the threads of one follower and its owner share.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, atomic::AtomicU32},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use remora_engine::Database;

use super::{
    inbox::{Inbox, Message},
    statement::TableName,
    status::Board,
};
use crate::mysql::{binlog::Interrupter, schema::Selection, settings::MysqlSettings};

/// Orders that wait; more are refused.
const MAX_ORDERS: usize = 4_096;

/// The common ground.
pub(crate) struct Shared {
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
    orders: Mutex<Orders>,
    changed: Condvar,
}

/// What the owner wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// To follow.
    #[default]
    Run,
    /// Not to, for now.
    Stop,
    /// Never again.
    Close,
}

/// What the owner wants of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableOrder {
    /// A new copy of the table of this name here.
    Sync(String),
    /// No copy of the table of this name, or of any.
    Cancel(Option<String>),
}

#[derive(Default)]
struct Orders {
    wanted: Wanted,
    tables: VecDeque<TableOrder>,
    inbox: Option<Arc<Inbox>>,
    interrupter: Option<Interrupter>,
}

impl Shared {
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
            orders: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// What the owner wants now.
    pub fn wanted(&self) -> Wanted {
        self.orders.lock().wanted
    }

    /// Says what is wanted, and sees to it that everyone notices. Closing is for good.
    pub fn want(&self, wanted: Wanted) {
        let mut orders = self.orders.lock();
        if orders.wanted != Wanted::Close {
            orders.wanted = wanted;
        }
        self.changed.notify_all();
        if let Some(inbox) = &orders.inbox {
            inbox.push(Message::Order);
        }
        let interrupter = orders.interrupter.clone().filter(|_| wanted != Wanted::Run);
        drop(orders);
        if let Some(interrupter) = interrupter {
            interrupter.interrupt();
        }
    }

    /// Waits until following is wanted; false if it never will be again.
    pub fn wait_to_run(&self) -> bool {
        let mut orders = self.orders.lock();
        while orders.wanted == Wanted::Stop {
            self.changed.wait(&mut orders);
        }
        orders.wanted == Wanted::Run
    }

    /// Waits so long, or until something else is wanted.
    pub fn pause(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let mut orders = self.orders.lock();
        while orders.wanted == Wanted::Run {
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

    /// The next order.
    pub fn next_order(&self) -> Option<TableOrder> {
        self.orders.lock().tables.pop_front()
    }

    /// Events that wait to be applied.
    pub fn queue_length(&self) -> usize {
        self.orders.lock().inbox.as_ref().map_or(0, |inbox| inbox.len())
    }
}
