/* lab/pingpong.c - two runtimes that play ball, and cancel each other's players by messages.
 *
 * The player of the first runtime, when cancelled, cancels the other one. Then it waits, masked, for the message
 * that the other has ended: a cleanup that reaches into another runtime. Each player sends that message from a
 * finalizer, so it is sent however the player ends. */
#include "lab/lab.h"

enum { PLAYERS = 2, VOLLEYS = 6 };

enum { BALL = 1, GONE = 2 };

typedef struct player {
    EBB_TASK_STATE;
    struct game *game;
    uint32_t number;
    uint32_t balls; /* received and not played yet */
    bool other_is_gone;
    uint32_t i, entered, left;
} player;

typedef struct game {
    ebb_lab *lab;
    player player[PLAYERS];
    ebb_task task[PLAYERS];
} game;

static void send(ebb_cx *cx, player *p, ebb_msg msg) {
    msg.target = p->game->task[1 - p->number].id;
    ebb_lab_send(p->game->lab, cx, &msg);
}

static ebb_status say_gone(ebb_cx *cx, void *state) {
    player *p = state;
    p->left++;
    send(cx, p, (ebb_msg){.verb = EBB_MSG_WORD, .word = GONE});
    return EBB_OK;
}

/* EBB_PENDING until there is a ball; the message that brings one wakes the task. */
static ebb_status await_ball(ebb_cx *cx, player *p) {
    if (ebb_checkpoint(cx) != EBB_OK) return EBB_CANCELLED;
    if (p->balls > 0) {
        p->balls--;
        return EBB_OK;
    }
    return p->other_is_gone ? EBB_ERR_CLOSED : EBB_PENDING;
}

/* The task is masked, so a checkpoint returns EBB_CANCELLED only after the cleanup budget has run out. */
static ebb_status await_gone(ebb_cx *cx, const player *p) {
    if (p->other_is_gone) return EBB_OK;
    return ebb_checkpoint(cx) != EBB_OK ? EBB_CANCELLED : EBB_PENDING;
}

static ebb_status player_poll(ebb_cx *cx, void *state) {
    player *p = state;
    ebb_status st = EBB_OK;
    EBB_BEGIN(p);
    if (ebb_defer(cx, say_gone, p) == EBB_OK) p->entered++;
    for (p->i = 0; p->i < VOLLEYS; p->i++) {
        if (p->i > 0 || p->number != 0) {
            EBB_AWAIT(p, st, await_ball(cx, p));
            if (st != EBB_OK) break;
        }
        send(cx, p, (ebb_msg){.verb = EBB_MSG_WORD, .word = BALL});
    }
    if (!ebb_cancelled(cx) || p->number != 0) return st == EBB_ERR_CLOSED ? EBB_OK : st;
    (void)ebb_mask(cx);
    send(cx, p,
         (ebb_msg){.verb = EBB_MSG_CANCEL, .kind = EBB_CANCEL_DISCONNECT, .message = "the other side left"});
    EBB_AWAIT(p, st, await_gone(cx, p));
    (void)ebb_unmask(cx);
    return EBB_CANCELLED;
    EBB_END(p);
}

static ebb_status pingpong_setup(ebb_lab *lab) {
    game *g = ebb_lab_state(lab);
    g->lab = lab;
    for (uint32_t i = 0; i < PLAYERS; i++) {
        g->player[i] = (player){.game = g, .number = i};
        g->task[i] = ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, i)), ebb_lab_region(lab, i), player_poll,
                               &g->player[i]);
        if (ebb_id_status(g->task[i].id) != EBB_OK) return ebb_id_status(g->task[i].id);
    }
    return EBB_OK;
}

static void pingpong_received(ebb_lab *lab, const ebb_msg *msg) {
    game *g = ebb_lab_state(lab);
    for (uint32_t i = 0; i < PLAYERS && msg->verb == EBB_MSG_WORD; i++) {
        if (msg->target != g->task[i].id) continue;
        if (msg->word == BALL) g->player[i].balls++;
        else g->player[i].other_is_gone = true;
    }
}

static void pingpong_step(ebb_lab *lab, uint32_t n) {
    static const ebb_cancel_kind kinds[] = {EBB_CANCEL_USER, EBB_CANCEL_TIMEOUT, EBB_CANCEL_SHUTDOWN};
    game *g = ebb_lab_state(lab);
    uint32_t i = ebb_lab_choose(lab, PLAYERS);
    ebb_cx *host = ebb_runtime_host(ebb_lab_runtime(lab, i));
    ebb_msg msg = {.verb = EBB_MSG_CANCEL, .kind = kinds[n % 3], .message = "from the other side"};
    switch (ebb_lab_choose(lab, 5)) {
    case 1: ebb_task_cancel(host, g->task[i], kinds[n % 3], "from this side"); break;
    case 2: send(host, &g->player[i], msg); break;
    case 3:
        msg.to_region = true;
        msg.target = ebb_lab_region(lab, 1 - i).id;
        ebb_lab_send(lab, host, &msg);
        break;
    case 4: send(host, &g->player[i], (ebb_msg){.verb = EBB_MSG_FORCE}); break;
    default: break;
    }
}

static void pingpong_check(ebb_lab *lab) {
    game *g = ebb_lab_state(lab);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        if (g->player[i].entered != g->player[i].left)
            ebb_lab_fail(lab, "a player did not report its end exactly once");
    }
}

const ebb_lab_scenario ebb__scenario_pingpong2 = {
    .name = "pingpong2",
    .about = "two runtimes; cancels travel as messages, and cleaning up waits for the other",
    .runtimes = PLAYERS,
    .steps = 3,
    .state_size = sizeof(game),
    .setup = pingpong_setup,
    .step = pingpong_step,
    .received = pingpong_received,
    .check = pingpong_check};
