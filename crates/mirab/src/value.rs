//! Payloads and results without their types: the scheduler keeps tasks of all pools alike.
use std::any::{Any, TypeId};

/// A payload on its way to its executor.
pub(crate) type Payload = Box<dyn Any + Send>;

/// A result. Who submits a task again by its key gets a clone of it.
pub(crate) trait Value: Any + Send {
    fn clone_value(&self) -> Box<dyn Value>;
    #[cfg(feature = "sqlite")]
    fn as_any(&self) -> &dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send>;
}

impl<T: Clone + Send + 'static> Value for T {
    fn clone_value(&self) -> Box<dyn Value> {
        Box::new(self.clone())
    }

    #[cfg(feature = "sqlite")]
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// A type, to be compared and told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeOf {
    pub id: TypeId,
    pub name: &'static str,
}

impl TypeOf {
    pub fn of<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: std::any::type_name::<T>() }
    }
}

/// The payload as what the executor takes; a text in quotes serves where a `String` is taken. Gives it back when it does not fit.
pub(crate) fn fit<P: Send + 'static>(payload: Payload) -> Result<Payload, Payload> {
    if payload.is::<P>() {
        return Ok(payload);
    }
    match payload.downcast_ref::<&'static str>() {
        Some(text) if TypeId::of::<P>() == TypeId::of::<String>() => Ok(Box::new((*text).to_owned())),
        _ => Err(payload),
    }
}

/// A result as what the caller expects: `()` takes any.
pub(crate) fn open<T: 'static>(value: Box<dyn Value>) -> Option<T> {
    let value = value.into_any();
    match value.downcast::<T>() {
        Ok(value) => Some(*value),
        Err(_) => (Box::new(()) as Box<dyn Any>).downcast::<T>().ok().map(|nothing| *nothing),
    }
}
