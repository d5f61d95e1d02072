//! A client of an API that allows 50 requests a second in bursts of 10 and answers 429 above that: with a bucket of the same rate and half the
//! burst it is used to the full, and never refuses. Both are real: an HTTP server on a port of this machine, and an HTTP client on threads.
//!
//! `cargo run -p mirab --example rate_limited_api [seconds]` fails when there was a 429, or less than 98 % of what the API allows.
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header::RETRY_AFTER};
use axum::{Router, routing::get};
use mirab::{Context, Pool, ResourceConfig, Retryable, Scheduler, Task, TaskError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const RATE: f64 = 50.0;
const BURST: f64 = 10.0;

/// The far side, with its own bucket.
struct Api {
    tokens: Mutex<(f64, Instant)>,
    served: AtomicU64,
    refused: AtomicU64,
}

impl Api {
    fn has_token(&self) -> bool {
        let mut bucket = self.tokens.lock().expect("nobody panics with it");
        let (tokens, since) = *bucket;
        let tokens = (tokens + RATE * since.elapsed().as_secs_f64()).min(BURST);
        *bucket = (if tokens >= 1.0 { tokens - 1.0 } else { tokens }, Instant::now());
        tokens >= 1.0
    }
}

async fn answer(State(api): State<Arc<Api>>) -> (StatusCode, [(HeaderName, &'static str); 1], &'static str) {
    let (counter, status, text) = match api.has_token() {
        true => (&api.served, StatusCode::OK, "well done"),
        false => (&api.refused, StatusCode::TOO_MANY_REQUESTS, "slow down"),
    };
    counter.fetch_add(1, Ordering::Relaxed);
    (status, [(RETRY_AFTER, "1")], text)
}

async fn serve(api: Arc<Api>) -> std::io::Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let router = Router::new().route("/", get(answer)).with_state(api);
    tokio::spawn(async { axum::serve(listener, router).await });
    Ok(url)
}

/// One call. A refusal would be tried again when the API says, and hold all other calls back until then.
fn call(http: &ureq::Agent, ctx: &Context, url: &str) -> Result<String, TaskError> {
    let mut response = http.get(url).call()?;
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let pause = Duration::from_secs(seconds.unwrap_or(1));
        ctx.cooldown("api", pause)?;
        return Err(Retryable::new("429: too many requests").retry_after(pause).into());
    }
    Ok(response.body_mut().read_to_string()?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds: u32 = std::env::args().nth(1).map_or(Ok(20), |seconds| seconds.parse())?;
    let (tokens, served, refused) = (Mutex::new((BURST, Instant::now())), AtomicU64::new(0), AtomicU64::new(0));
    let api = Arc::new(Api { tokens, served, refused });
    let url = serve(Arc::clone(&api)).await?;
    let http: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let scheduler = Scheduler::builder()
        .resource(ResourceConfig::token_bucket("api", RATE, 5))
        .pool(Pool::blocking("calls", move |ctx, url: String| call(&http, &ctx, &url)).slots(8).resource("api", 1))
        .start()?;
    let more_than_enough = 2 * seconds as usize * RATE as usize;
    let handles = scheduler.submit_many::<String, _>((0..more_than_enough).map(|_| Task::new(url.clone()).retries(3)));
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    scheduler.shutdown(Duration::ZERO).await;
    drop(handles);
    let (served, refused) = (api.served.load(Ordering::Relaxed), api.refused.load(Ordering::Relaxed));
    let allowed = RATE * f64::from(seconds);
    println!(
        "{served} calls in {seconds} s, {:.1} % of the limit; {refused} answers of 429",
        100.0 * served as f64 / allowed
    );
    if refused > 0 || (served as f64) < 0.98 * allowed {
        return Err("expected no 429, and at least 98 % of the limit".into());
    }
    Ok(())
}
