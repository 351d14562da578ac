//! Lies about which names are equal.

use async_trait::async_trait;
use lockkit_core::{LockName, Resource};

use super::lie::Lie;

fn renamed(resource: &Resource, name: &str) -> Resource {
    let name = LockName::new(name).unwrap_or_else(|_| resource.name().clone());
    Resource::new(resource.primitive(), name)
}

/// Takes a slash for a folder, and locks the folder.
#[derive(Debug, Default)]
pub(super) struct CutsAtTheSlash;

#[async_trait]
impl Lie for CutsAtTheSlash {
    fn place(&self, resource: &Resource) -> Resource {
        let name = resource.name().as_str();
        renamed(resource, name.split('/').next().unwrap_or(name))
    }
}

/// Stores names in a column that ignores case.
#[derive(Debug, Default)]
pub(super) struct FoldsCase;

#[async_trait]
impl Lie for FoldsCase {
    fn place(&self, resource: &Resource) -> Resource {
        renamed(resource, &resource.name().as_str().to_lowercase())
    }
}
