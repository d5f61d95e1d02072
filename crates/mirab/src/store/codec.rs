//! Payloads and results as bytes.
use crate::value::{Payload, TypeOf, Value};
use mirab_store::Blob;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// Why a value could not be written or read.
pub type CodecError = Box<dyn std::error::Error + Send + Sync>;

/// Writes values of a type as bytes and reads them again.
pub trait Codec<T>: Send + Sync + 'static {
    /// Stored with the bytes: they are read by a codec of the same name only.
    fn name(&self) -> &str;

    /// Writes a value.
    ///
    /// # Errors
    /// For a value that cannot be written: the submission is refused, the attempt fails.
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError>;

    /// Reads it again.
    ///
    /// # Errors
    /// For bytes that are no such value: the scheduler does not start.
    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError>;
}

/// JSON by serde.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    fn name(&self) -> &str {
        "json"
    }

    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        Ok(serde_json::to_vec(value)?)
    }

    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// The codec of a pool, without its types.
pub(crate) trait Coder: Send + Sync {
    fn takes(&self) -> TypeOf;
    fn gives(&self) -> TypeOf;
    fn encode_payload(&self, payload: &Payload) -> Result<Blob, CodecError>;
    fn decode_payload(&self, blob: &Blob) -> Result<Payload, CodecError>;
    fn encode_result(&self, value: &dyn Value) -> Result<Blob, CodecError>;
    fn decode_result(&self, blob: &Blob) -> Result<Box<dyn Value>, CodecError>;
}

/// A codec that knows its types.
pub(crate) struct TypedCoder<C, P, R> {
    codec: C,
    /// It holds no value of them.
    types: PhantomData<fn(P) -> R>,
}

impl<C, P, R> TypedCoder<C, P, R> {
    pub fn new(codec: C) -> Self {
        Self { codec, types: PhantomData }
    }
}

impl<C, P, R> Coder for TypedCoder<C, P, R>
where
    C: Codec<P> + Codec<R>,
    P: Send + 'static,
    R: Clone + Send + 'static,
{
    fn takes(&self) -> TypeOf {
        TypeOf::of::<P>()
    }

    fn gives(&self) -> TypeOf {
        TypeOf::of::<R>()
    }

    fn encode_payload(&self, payload: &Payload) -> Result<Blob, CodecError> {
        write::<P>(&self.codec, payload.downcast_ref().ok_or("it is of another type")?)
    }

    fn decode_payload(&self, blob: &Blob) -> Result<Payload, CodecError> {
        Ok(Box::new(read::<P>(&self.codec, blob)?))
    }

    fn encode_result(&self, value: &dyn Value) -> Result<Blob, CodecError> {
        write::<R>(&self.codec, value.as_any().downcast_ref().ok_or("it is of another type")?)
    }

    fn decode_result(&self, blob: &Blob) -> Result<Box<dyn Value>, CodecError> {
        Ok(Box::new(read::<R>(&self.codec, blob)?))
    }
}

fn write<T>(codec: &impl Codec<T>, value: &T) -> Result<Blob, CodecError> {
    Ok(Blob { codec: codec.name().into(), bytes: codec.encode(value)? })
}

fn read<T>(codec: &impl Codec<T>, blob: &Blob) -> Result<T, CodecError> {
    if blob.codec != codec.name() {
        return Err(format!("it was written by codec {:?}, and is read by {:?}", blob.codec, codec.name()).into());
    }
    codec.decode(&blob.bytes)
}
