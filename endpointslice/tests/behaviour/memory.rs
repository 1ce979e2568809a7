//! Simulated API server for slices in memory: [`Memory`].

use endpointslice::model::EndpointSlice;
use endpointslice::plan::{Precondition, Update};
use endpointslice::{SliceWriter, Text};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// EndpointSlices of a simulated API server, and the calls that it received, such as `create web-00001`.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    state: Mutex<State>,
    /// Calls that fail: each call whose text has this prefix fails with this error.
    pub(crate) failing: Option<(&'static str, ApiError)>,
}

#[derive(Debug, Default)]
struct State {
    slices: BTreeMap<Text, Arc<EndpointSlice>>,
    calls: Vec<String>,
    created: usize,
}

/// Error of a failed call.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub(crate) enum ApiError {
    #[error("no room")]
    NoRoom,
    #[error("namespace terminating")]
    NamespaceTerminating,
}

impl Memory {
    pub(crate) fn new(slices: impl IntoIterator<Item = EndpointSlice>) -> Self {
        let memory = Self::default();
        for slice in slices {
            memory.put(slice);
        }
        memory
    }

    pub(crate) fn put(&self, slice: EndpointSlice) {
        self.state.lock().slices.insert(slice.metadata.name.clone(), Arc::new(slice));
    }

    pub(crate) fn remove(&self, name: &str) {
        self.state.lock().slices.remove(name);
    }

    pub(crate) fn slices(&self) -> Vec<Arc<EndpointSlice>> {
        self.state.lock().slices.values().cloned().collect()
    }

    pub(crate) fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().calls)
    }

    fn call(&self, line: String) -> Result<(), ApiError> {
        let failure = self.failing.filter(|(begin, _)| line.starts_with(begin));
        self.state.lock().calls.push(line);
        failure.map_or(Ok(()), |(_, failure)| Err(failure))
    }
}

impl SliceWriter for Memory {
    type Error = ApiError;

    async fn create(&self, slice: &EndpointSlice) -> Result<EndpointSlice, ApiError> {
        let mut stored = slice.clone();
        let number = {
            let mut state = self.state.lock();
            state.created += 1;
            state.created
        };
        stored.metadata.name = format!("{}{number:05}", slice.metadata.generate_name).into();
        stored.metadata.uid = format!("new-{number}").into();
        stored.metadata.generation = 1;
        stored.metadata.resource_version = "1".into();
        self.call(format!("create {}", stored.metadata.name))?;
        self.put(stored.clone());
        Ok(stored)
    }

    /// Applies the merge patch, and asserts that a replace would give the same result.
    async fn update(&self, update: &Update) -> Result<EndpointSlice, ApiError> {
        let name = &update.before.metadata.name;
        self.call(format!("update {name}"))?;
        let stored = self.state.lock().slices.get(name).cloned().expect("an update of a slice that is there");
        let mut object = serde_json::to_value(&*stored).expect("a slice as JSON");
        json_patch::merge(&mut object, &update.merge_patch(Precondition::None));
        let mut stored: EndpointSlice = serde_json::from_value(object).expect("a slice of JSON");
        let mut replaced = update.after.clone();
        replaced.metadata.uid = stored.metadata.uid.clone();
        replaced.metadata.resource_version = stored.metadata.resource_version.clone();
        replaced.metadata.generation = stored.metadata.generation;
        replaced.metadata.generate_name = stored.metadata.generate_name.clone();
        assert_eq!(stored, replaced, "a patch and a replace make the same of {name}");
        stored.metadata.generation += 1;
        stored.metadata.resource_version = stored.metadata.generation.to_string().into();
        self.put(stored.clone());
        Ok(stored)
    }

    async fn delete(&self, slice: &EndpointSlice) -> Result<(), ApiError> {
        self.call(format!("delete {}", slice.metadata.name))?;
        self.remove(&slice.metadata.name);
        Ok(())
    }

    fn is_namespace_terminating(&self, error: &ApiError) -> bool {
        *error == ApiError::NamespaceTerminating
    }
}
