%% The kernel's benchmark rows, done the way Erlang does them: processes, links and
%% exit signals. Protocol and caveats: bench/peers/README.md.
-module(ebb_peer).
-export([main/1]).

-define(MILLION, 1000000).

main([Name, Rounds]) ->
    case row(Name) of
        {skip, Why} ->
            io:format("skip ~s ~s~n", [Name, Why]);
        {Unit, Round} ->
            [io:format("row ~s ~s ~.3f~n", [Name, Unit, in_fresh_process(Round)])
             || _ <- lists:seq(1, list_to_integer(Rounds))]
    end,
    halt(0).

row("kernel.spawn_end_seq") -> {"ns", fun spawn_end_seq/0};
row("kernel.spawn_end_1m") -> {"ns", fun spawn_end_million/0};
row("kernel.region_open_close") -> {skip, "a scope is a process here: see kernel.spawn_end_seq"};
row("kernel.task_bytes") -> {"bytes", fun task_bytes/0};
row("kernel.cancel_fan_1m") -> {"ns", fun cancel_fan/0};
row("kernel.cancel_chain_1m") -> {"ns", fun cancel_chain/0};
row("kernel.cancelled_check") -> {"ns", fun cancelled_check/0};
row("kernel.channel_msg") -> {"ns", fun channel_message/0};
row("kernel.timer_arm_cancel_1m") -> {"ns", fun timer_arm_cancel/0};
row("machine.message") -> {"ns", fun channel_message/0};
row("machine.ring_100k") -> {"ns", fun ring/0};
row("machine.idle_bytes") -> {"bytes", fun task_bytes/0};
row(_) -> {skip, "no such row in this peer"}.

%% So that no round pays for the garbage of the one before.
in_fresh_process(Round) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({value, Round()}) end),
    receive {'DOWN', Monitor, process, Pid, {value, Value}} -> Value end.

%% The process's clock has a resolution of a millisecond: 1 ns in a row of a million.
cpu_per(N, Work) ->
    erlang:garbage_collect(),
    {Start, _} = statistics(runtime),
    Work(),
    {End, _} = statistics(runtime),
    (End - Start) * 1.0e6 / N.

resident_bytes() ->
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [Kib]} = re:run(Status, "VmRSS:\\s+(\\d+)", [{capture, [1], list}]),
    list_to_integer(Kib) * 1024.

spawn_end_seq() -> cpu_per(?MILLION, fun() -> spawn_and_wait(?MILLION) end).

spawn_and_wait(0) -> ok;
spawn_and_wait(N) ->
    {_, Monitor} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    spawn_and_wait(N - 1).

%% At high priority the spawner isn't preempted by what it spawned: all are alive at once.
%% Its mailbox is off its heap, or each collection would copy the messages that wait.
spawn_end_million() ->
    process_flag(message_queue_data, off_heap),
    cpu_per(?MILLION, fun() ->
        process_flag(priority, high),
        spawn_monitored(?MILLION),
        process_flag(priority, normal),
        wait_for_downs(?MILLION)
    end).

spawn_monitored(0) -> ok;
spawn_monitored(N) -> spawn_monitor(fun() -> ok end), spawn_monitored(N - 1).

wait_for_downs(0) -> ok;
wait_for_downs(N) -> receive {'DOWN', _, process, _, _} -> wait_for_downs(N - 1) end.

park() -> receive stop -> ok end.

%% A process with n children linked to it; returns when all of them wait.
parked_fan(N) ->
    Self = self(),
    Root = spawn(fun() -> spawn_linked(N), Self ! ready, park() end),
    receive ready -> ok end,
    timer:sleep(200),
    Root.

spawn_linked(0) -> ok;
spawn_linked(N) -> spawn_link(fun park/0), spawn_linked(N - 1).

%% Asleep between the looks, so that looking costs no CPU.
stop_and_wait(Root, Before) ->
    exit(Root, stop),
    wait_for_count(Before).

wait_for_count(Before) ->
    case erlang:system_info(process_count) =< Before of
        true -> ok;
        false -> timer:sleep(1), wait_for_count(Before)
    end.

task_bytes() ->
    Count = erlang:system_info(process_count),
    Before = resident_bytes(),
    Root = parked_fan(?MILLION),
    Bytes = (resident_bytes() - Before) / ?MILLION,
    stop_and_wait(Root, Count),
    Bytes.

cancel_fan() ->
    Count = erlang:system_info(process_count),
    Root = parked_fan(?MILLION),
    cpu_per(?MILLION, fun() -> stop_and_wait(Root, Count) end).

%% Each level is a process linked to the one above it.
cancel_chain() ->
    Count = erlang:system_info(process_count),
    Self = self(),
    Root = spawn(fun() -> chain(?MILLION, Self) end),
    receive bottom -> ok end,
    timer:sleep(200),
    cpu_per(?MILLION, fun() -> stop_and_wait(Root, Count) end).

chain(0, Builder) -> Builder ! bottom, park();
chain(N, Builder) -> spawn_link(fun() -> chain(N - 1, Builder) end), park().

%% Nothing is asked in Erlang, an exit signal comes; what a process can ask is its mailbox.
cancelled_check() ->
    Checks = 20 * ?MILLION,
    cpu_per(Checks, fun() -> check(Checks) end).

check(0) -> ok;
check(N) -> receive stop -> ok after 0 -> check(N - 1) end.

channel_message() ->
    Echo = spawn_link(fun echo/0),
    Ns = cpu_per(2 * ?MILLION, fun() -> ping(?MILLION, Echo) end),
    Echo ! stop,
    Ns.

echo() -> receive {From, V} -> From ! V, echo(); stop -> ok end.

ping(0, _) -> ok;
ping(N, Echo) -> Echo ! {self(), N}, receive N -> ok end, ping(N - 1, Echo).

%% 100,000 processes in a ring; a message goes round twenty times.
ring() ->
    Count = 100000,
    Self = self(),
    First = lists:foldl(fun(_, Next) -> spawn_link(fun() -> pass_on(Next) end) end, Self, lists:seq(1, Count)),
    timer:sleep(200),
    Ns = cpu_per(20 * Count, fun() -> rounds(20, First) end),
    First ! stop,
    receive stop -> ok end,
    Ns.

pass_on(Next) -> receive stop -> Next ! stop; N -> Next ! N, pass_on(Next) end.

rounds(0, _) -> ok;
rounds(N, First) -> First ! N, receive N -> ok end, rounds(N - 1, First).

timer_arm_cancel() ->
    Due = [100000 + rand:uniform(1000000) || _ <- lists:seq(1, ?MILLION)],
    cpu_per(?MILLION, fun() ->
        Timers = [erlang:start_timer(D, self(), fired) || D <- Due],
        lists:foreach(fun erlang:cancel_timer/1, Timers)
    end).
