//! Shared data and shared queues, one of each a process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, Weak};

use super::abi::Status;

/// Queue messages announced to one VM and not yet delivered: (root context, queue token).
pub type Inbox = Mutex<VecDeque<(u32, u32)>>;

/// Keys to values with their compare-and-swap numbers, by vm_id.
#[derive(Default)]
pub struct SharedData {
    rows: BTreeMap<(String, String), (Vec<u8>, u32)>,
    last_cas: u32,
}

impl SharedData {
    pub fn get(&self, vm_id: &str, key: &str) -> Option<(Vec<u8>, u32)> {
        self.rows.get(&(vm_id.to_owned(), key.to_owned())).cloned()
    }

    /// `cas` 0 sets in any case, another one only where it is the present one or the key is new.
    pub fn set(&mut self, vm_id: &str, key: &str, value: Vec<u8>, cas: u32) -> Status {
        let row = (vm_id.to_owned(), key.to_owned());
        if cas != 0 && self.rows.get(&row).is_some_and(|(_, present)| *present != cas) {
            return Status::CasMismatch;
        }
        self.last_cas += 1;
        self.rows.insert(row, (value, self.last_cas));
        Status::Ok
    }

    /// The names of all keys.
    pub fn keys(&self) -> Vec<&str> {
        self.rows.keys().map(|(_, key)| key.as_str()).collect()
    }

    /// How often anything has been written.
    pub fn writes(&self) -> u32 {
        self.last_cas
    }
}

/// A queue: its messages and the one VM that is told of them.
struct Queue {
    vm_id: String,
    name: String,
    root: u32,
    inbox: Weak<Inbox>,
    messages: VecDeque<Vec<u8>>,
}

/// Queues by token, counted from 1.
#[derive(Default)]
pub struct Queues(Vec<Queue>);

impl Queues {
    /// The last registrant of a name is told of its messages; older ones no longer.
    pub fn register(&mut self, vm_id: &str, name: &str, root: u32, inbox: Weak<Inbox>) -> u32 {
        match self.resolve(vm_id, name) {
            Some(token) => {
                let queue = &mut self.0[index(token)];
                (queue.root, queue.inbox) = (root, inbox);
                token
            }
            None => {
                let messages = VecDeque::new();
                self.0.push(Queue { vm_id: vm_id.to_owned(), name: name.to_owned(), root, inbox, messages });
                u32::try_from(self.0.len()).expect("few queues")
            }
        }
    }

    /// How many names have ever been registered.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn resolve(&self, vm_id: &str, name: &str) -> Option<u32> {
        let at = self.0.iter().position(|queue| queue.vm_id == vm_id && queue.name == name)?;
        u32::try_from(at + 1).ok()
    }

    /// One announcement a message. Where the registrant's VM is gone the message stays for ever, and it is `Ok` still.
    pub fn enqueue(&mut self, token: u32, message: Vec<u8>) -> Status {
        let Some(queue) = self.0.get_mut(index(token)) else { return Status::NotFound };
        queue.messages.push_back(message);
        if let Some(inbox) = queue.inbox.upgrade() {
            inbox.lock().expect("inbox").push_back((queue.root, token));
        }
        Status::Ok
    }

    pub fn dequeue(&mut self, token: u32) -> Result<Vec<u8>, Status> {
        let queue = self.0.get_mut(index(token)).ok_or(Status::NotFound)?;
        queue.messages.pop_front().ok_or(Status::Empty)
    }
}

/// Token 0 is none; it maps to a place that no queue has.
fn index(token: u32) -> usize {
    usize::try_from(token).expect("64 bits").wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn compare_and_swap_creates_where_absent_and_refuses_where_changed() {
        let mut data = SharedData::default();
        assert_eq!(data.set("vm", "k", vec![1], u32::MAX), Status::Ok);
        assert_eq!(data.set("vm", "k", vec![2], u32::MAX), Status::CasMismatch);
        let (_, cas) = data.get("vm", "k").expect("set above");
        assert_eq!(data.set("vm", "k", vec![3], cas), Status::Ok);
        assert_eq!(data.set("vm", "k", vec![4], cas), Status::CasMismatch);
        assert_eq!(data.get("other", "k"), None);
    }

    #[test]
    fn the_last_registrant_hears_of_each_message() {
        let (old, new) = (Arc::new(Inbox::default()), Arc::new(Inbox::default()));
        let mut queues = Queues::default();
        let token = queues.register("vm", "q", 1, Arc::downgrade(&old));
        assert_eq!(queues.register("vm", "q", 7, Arc::downgrade(&new)), token);
        assert_eq!(queues.enqueue(token, vec![1]), Status::Ok);
        assert_eq!(queues.enqueue(token, vec![2]), Status::Ok);
        assert_eq!(queues.enqueue(token + 1, vec![]), Status::NotFound);
        assert!(old.lock().unwrap().is_empty());
        assert_eq!(*new.lock().unwrap(), [(7, token), (7, token)]);
        drop(new);
        assert_eq!(queues.enqueue(token, vec![3]), Status::Ok);
        assert_eq!(queues.dequeue(token), Ok(vec![1]));
    }
}
