//! The in-memory backend, tested.

use async_trait::async_trait;
use lockkit_core::{Backend, Descriptor, Memory, MemoryStore, Result};

use crate::{Harness, Time, leftovers};

/// The harness of the in-memory backend, and the honest side of every [liar](crate::liars).
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    store: MemoryStore,
    time: Time,
}

impl InMemory {
    /// An empty store on this clock.
    #[must_use]
    pub fn new(time: Time) -> Self {
        Self {
            store: MemoryStore::new(),
            time,
        }
    }

    /// A client of the store.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.store.backend()
    }
}

#[async_trait]
impl Harness for InMemory {
    fn descriptor(&self) -> &Descriptor {
        Memory::descriptor()
    }

    async fn backend(&self) -> Result<Box<dyn Backend>> {
        Ok(Box::new(self.memory()))
    }

    async fn census(&self) -> Result<Vec<String>> {
        leftovers(&self.memory()).await
    }

    fn time(&self) -> Time {
        self.time
    }
}
