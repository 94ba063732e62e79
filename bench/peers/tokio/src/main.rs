//! The kernel's benchmark rows, done the way tokio does them, on its current-thread
//! runtime. Protocol and caveats: bench/peers/README.md.

use std::future::{pending, Future};
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

const MILLION: usize = 1_000_000;

type Round = Pin<Box<dyn Future<Output = f64> + Send>>;

fn find_row(name: &str) -> Option<(&'static str, fn() -> Round)> {
    Some(match name {
        "kernel.spawn_end_seq" => ("ns", || Box::pin(spawn_end_seq())),
        "kernel.spawn_end_1m" => ("ns", || Box::pin(spawn_end_million())),
        "kernel.region_open_close" => ("ns", || Box::pin(region_open_close())),
        "kernel.task_bytes" => ("bytes", || Box::pin(task_bytes())),
        "kernel.cancel_fan_1m" => ("ns", || Box::pin(cancel_fan())),
        "kernel.cancel_chain_1m" => ("ns", || Box::pin(cancel_chain())),
        "kernel.cancelled_check" => ("ns", || Box::pin(cancelled_check())),
        "kernel.channel_msg" => ("ns", || Box::pin(channel_message())),
        "kernel.timer_arm_cancel_1m" => ("ns", || Box::pin(timer_arm_cancel())),
        "future.then_chain_1m" => ("ns", || Box::pin(then_chain())),
        _ => return None,
    })
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, name, rounds] = args.as_slice() else {
        eprintln!("usage: peer <row> <rounds>");
        std::process::exit(2);
    };
    let rounds: usize = rounds.parse().expect("rounds must be a number");
    let Some((unit, round)) = find_row(name) else {
        println!("skip {name} no such row in this peer");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("runtime");
    for _ in 0..rounds {
        // Spawned, because the future given to block_on is not a task and wakes otherwise.
        let value = runtime.block_on(async { tokio::spawn(round()).await.unwrap() });
        println!("row {name} {unit} {value:.3}");
    }
}

fn cpu_nanoseconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec for the call to fill.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc/self/status");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("VmRSS");
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024.0
}

async fn spawn_end_seq() -> f64 {
    let start = cpu_nanoseconds();
    for _ in 0..MILLION {
        tokio::spawn(async {}).await.unwrap();
    }
    (cpu_nanoseconds() - start) / MILLION as f64
}

async fn spawn_end_million() -> f64 {
    let mut tasks = Vec::with_capacity(MILLION);
    let start = cpu_nanoseconds();
    for _ in 0..MILLION {
        tasks.push(tokio::spawn(async {}));
    }
    for task in tasks {
        task.await.unwrap();
    }
    (cpu_nanoseconds() - start) / MILLION as f64
}

async fn region_open_close() -> f64 {
    let parent = CancellationToken::new();
    let start = cpu_nanoseconds();
    for _ in 0..MILLION {
        parent.child_token().cancel();
    }
    (cpu_nanoseconds() - start) / MILLION as f64
}

/// Spawns n tasks and returns when each has been polled and waits.
async fn park(n: usize) -> Vec<JoinHandle<()>> {
    let tasks = (0..n).map(|_| tokio::spawn(pending())).collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    tasks
}

/// abort() is the cheapest cancel tokio has: a token each task listens to costs more.
async fn cancel_all(tasks: Vec<JoinHandle<()>>) {
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        assert!(task.await.unwrap_err().is_cancelled());
    }
}

async fn task_bytes() -> f64 {
    let before = resident_bytes();
    let tasks = park(MILLION).await;
    let bytes = (resident_bytes() - before) / MILLION as f64;
    cancel_all(tasks).await;
    bytes
}

async fn cancel_fan() -> f64 {
    let tasks = park(MILLION).await;
    let start = cpu_nanoseconds();
    cancel_all(tasks).await;
    (cpu_nanoseconds() - start) / MILLION as f64
}

/// Tokens only: nothing waits at any level, and dropping them is not counted.
async fn cancel_chain() -> f64 {
    let top = CancellationToken::new();
    let mut levels = Vec::with_capacity(MILLION);
    let mut bottom = top.clone();
    for _ in 0..MILLION {
        let child = bottom.child_token();
        levels.push(std::mem::replace(&mut bottom, child));
    }
    let start = cpu_nanoseconds();
    top.cancel();
    assert!(bottom.is_cancelled());
    (cpu_nanoseconds() - start) / MILLION as f64
}

async fn cancelled_check() -> f64 {
    const CHECKS: usize = 50 * MILLION;
    let token = CancellationToken::new();
    let mut seen = 0usize;
    let start = cpu_nanoseconds();
    for _ in 0..CHECKS {
        if black_box(&token).is_cancelled() {
            seen += 1;
        }
    }
    let ns = (cpu_nanoseconds() - start) / CHECKS as f64;
    assert_eq!(seen, 0);
    ns
}

async fn channel_message() -> f64 {
    let (ping, mut ping_out) = mpsc::channel::<usize>(1);
    let (pong, mut pong_out) = mpsc::channel::<usize>(1);
    tokio::spawn(async move {
        while let Some(v) = ping_out.recv().await {
            if pong.send(v + 1).await.is_err() {
                break;
            }
        }
    });
    let start = cpu_nanoseconds();
    for i in 0..MILLION {
        ping.send(i).await.unwrap();
        pong_out.recv().await.unwrap();
    }
    (cpu_nanoseconds() - start) / (2 * MILLION) as f64
}

/// A Sleep arms itself when first polled and is cancelled by being dropped.
async fn timer_arm_cancel() -> f64 {
    let due = random_due();
    let mut sleeps: Vec<Pin<Box<Sleep>>> = Vec::with_capacity(MILLION);
    let mut cx = Context::from_waker(Waker::noop());
    let start = cpu_nanoseconds();
    for d in due {
        let mut sleep = Box::pin(tokio::time::sleep(d));
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
        sleeps.push(sleep);
    }
    drop(sleeps);
    (cpu_nanoseconds() - start) / MILLION as f64
}

/// A continuation that can be handed on is a task that awaits a oneshot and sends on the next.
async fn then_chain() -> f64 {
    let start = cpu_nanoseconds();
    let (first, mut last) = oneshot::channel::<usize>();
    for _ in 0..MILLION {
        let (send, receive) = oneshot::channel();
        let before = std::mem::replace(&mut last, receive);
        tokio::spawn(async move {
            let _ = send.send(before.await.unwrap() + 1);
        });
    }
    tokio::task::yield_now().await;
    first.send(0).unwrap();
    assert_eq!(last.await.unwrap(), MILLION);
    (cpu_nanoseconds() - start) / MILLION as f64
}

fn random_due() -> Vec<Duration> {
    let mut x = 88172645463325252u64;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        Duration::from_millis(100_000 + x % 1_000_000)
    };
    (0..MILLION).map(|_| next()).collect()
}
