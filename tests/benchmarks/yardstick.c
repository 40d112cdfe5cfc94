/* 3UP 3DOWN in plain C: rules R4 to R21, the standard deck, 2 to 6 seats.
 *
 * What a C programmer would write for this one game, and the yardstick of
 * test_engine_speed.py, which compiles it. It shares no text with the engine,
 * so it is a third implementation of the rules as well. */

#include <stdint.h>
#include <string.h>

enum { CLEAR = 10, CLEAR_1, CLEAR_2, NUM_RANKS }; /* ranks 0..9 are the numbers 1..10 */
enum { FIRST_PLAY = NUM_RANKS, DRAW = 91, FLIP, PICK_UP, NUM_ACTIONS };
enum { EMPTY = -1, CUT_OFF = -2 };
enum { MAX_SEATS = 6, DECK_SIZE = 84, THREE = 3 };

static const uint8_t COPIES[NUM_RANKS] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 2};
static const uint8_t MAX_PLAYED[NUM_RANKS] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6, 1, 1};
static const uint8_t PLAY_ONE[NUM_RANKS] = {13, 20, 27, 34, 41, 48, 55, 62, 69, 76, 83, 89, 90};

typedef struct {
    uint8_t hand[NUM_RANKS], face_up[NUM_RANKS], face_down[THREE];
    uint8_t hand_size, face_up_size, face_down_size;
} Seat;

typedef struct {
    Seat seats[MAX_SEATS];
    uint8_t pile[NUM_RANKS], out_of_play[NUM_RANKS];
    uint8_t draw_pile[DECK_SIZE]; /* the last card is drawn first */
    int draw_pile_size, num_seats, seat, laying, owed, may_draw, top, winner, steps, max_steps;
} Game;

/* splitmix64 */
static uint64_t next_uint64(uint64_t *stream) {
    uint64_t bits = *stream += 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

/* An integer from 0..bound-1, all equally likely (Lemire 2019). */
static uint32_t random_below(uint64_t *stream, uint32_t bound) {
    uint64_t product = (next_uint64(stream) >> 32) * bound;
    if ((uint32_t)product < bound) {
        uint32_t unfair = -bound % bound;
        while ((uint32_t)product < unfair) product = (next_uint64(stream) >> 32) * bound;
    }
    return product >> 32;
}

/* R4, R5 */
static void deal(Game *game, uint64_t *stream) {
    uint8_t deck[DECK_SIZE];
    int num_seats = game->num_seats, max_steps = game->max_steps, next = 0;
    for (int rank = 0; rank < NUM_RANKS; rank++)
        for (int copy = 0; copy < COPIES[rank]; copy++) deck[next++] = rank;
    for (int last = DECK_SIZE - 1; last > 0; last--) {
        int other = random_below(stream, last + 1);
        uint8_t card = deck[last];
        deck[last] = deck[other];
        deck[other] = card;
    }
    memset(game, 0, sizeof *game);
    game->num_seats = num_seats;
    game->max_steps = max_steps;
    game->laying = THREE;
    game->top = game->winner = EMPTY;
    next = 0;
    for (int seat = 0; seat < num_seats; seat++) {
        game->seats[seat].face_down_size = THREE;
        for (int i = THREE - 1; i >= 0; i--) game->seats[seat].face_down[i] = deck[next++];
    }
    for (int seat = 0; seat < num_seats; seat++) {
        game->seats[seat].hand_size = 2 * THREE;
        for (int i = 0; i < 2 * THREE; i++) game->seats[seat].hand[deck[next++]]++;
    }
    game->draw_pile_size = DECK_SIZE - next;
    for (int i = game->draw_pile_size - 1; i >= 0; i--) game->draw_pile[i] = deck[next++];
}

typedef struct {
    uint8_t ids[NUM_ACTIONS], mask[NUM_ACTIONS]; /* ascending ids; 1 where legal */
    int count;
} Legal;

static void add(Legal *legal, int action) {
    legal->ids[legal->count++] = action;
    legal->mask[action] = 1;
}

/* R6, R7, R8 */
static void add_plays(Legal *legal, const uint8_t *cards, int top) {
    for (int rank = top < 0 ? 0 : top; rank < NUM_RANKS; rank++) {
        int most = cards[rank] < MAX_PLAYED[rank] ? cards[rank] : MAX_PLAYED[rank];
        for (int extra = 0; extra < most; extra++) add(legal, PLAY_ONE[rank] + extra);
    }
}

/* At least one action. */
static void list_legal(const Game *game, Legal *legal) {
    const Seat *own = &game->seats[game->seat];
    memset(legal->mask, 0, NUM_ACTIONS);
    legal->count = 0;
    if (game->laying) {
        for (int rank = 0; rank < NUM_RANKS; rank++)
            if (own->hand[rank]) add(legal, rank);
        return;
    }
    /* The active zone: R16; none: R17; face-down: R18. */
    if (own->hand_size)
        add_plays(legal, own->hand, game->top);
    else if (!game->draw_pile_size && own->face_up_size)
        add_plays(legal, own->face_up, game->top);
    else if (!game->draw_pile_size)
        add(legal, FLIP);
    if (game->may_draw)
        add(legal, DRAW);
    else if (!legal->count)
        add(legal, PICK_UP);
}

static void pass_turn(Game *game) {
    game->owed = game->may_draw = 0;
    if (++game->seat == game->num_seats) game->seat = 0;
}

/* R12, R15 */
static void draw_up(Game *game, Seat *own) {
    while (own->hand_size < THREE && game->draw_pile_size) {
        own->hand[game->draw_pile[--game->draw_pile_size]]++;
        own->hand_size++;
    }
}

/* R14 */
static void pick_up(Game *game, Seat *own) {
    for (int rank = 0; rank < NUM_RANKS; rank++) {
        own->hand[rank] += game->pile[rank];
        own->hand_size += game->pile[rank];
        game->pile[rank] = 0;
    }
    game->top = EMPTY;
    pass_turn(game);
}

/* R9 to R13, R15, R17, R20: cards that have left their zone, with all their effects. */
static void discard(Game *game, Seat *own, int rank, int copies) {
    if (rank < CLEAR) {
        game->top = rank;
        game->pile[rank] += copies;
    } else {
        game->out_of_play[rank] += copies;
    }
    if (rank >= CLEAR || game->pile[rank] >= THREE) {
        for (int i = 0; i < NUM_RANKS; i++) {
            game->out_of_play[i] += game->pile[i];
            game->pile[i] = 0;
        }
        game->top = EMPTY;
    }
    if (own->hand_size + own->face_up_size + own->face_down_size == 0) {
        game->winner = game->seat;
        return;
    }
    game->owed -= game->owed > 0;
    if (rank > CLEAR) game->owed += rank - CLEAR;
    game->may_draw = rank > CLEAR && game->draw_pile_size && own->hand_size < THREE;
    int lapses = !own->hand_size && game->draw_pile_size && !game->may_draw;
    if (!game->owed || lapses) {
        draw_up(game, own);
        pass_turn(game);
    }
}

static void apply_action(Game *game, int action) {
    Seat *own = &game->seats[game->seat];
    if (action < FIRST_PLAY) { /* R5 */
        own->hand[action]--, own->hand_size--;
        own->face_up[action]++, own->face_up_size++;
        if (--game->laying == 0) {
            pass_turn(game);
            if (game->seat) game->laying = THREE;
        }
    } else if (action == DRAW) {
        draw_up(game, own);
        game->may_draw = 0;
    } else if (action == PICK_UP) {
        pick_up(game, own);
    } else if (action == FLIP) { /* R18 */
        int rank = own->face_down[--own->face_down_size];
        if (rank >= game->top) {
            discard(game, own, rank, 1);
        } else {
            own->hand[rank]++, own->hand_size++;
            pick_up(game, own);
        }
    } else { /* R8, R16 */
        int rank = action < PLAY_ONE[CLEAR] ? (action - FIRST_PLAY) / 7
                   : action < PLAY_ONE[CLEAR_1] ? CLEAR : action - PLAY_ONE[CLEAR_1] + CLEAR_1;
        int copies = action - PLAY_ONE[rank] + 1;
        if (own->hand_size)
            own->hand[rank] -= copies, own->hand_size -= copies;
        else
            own->face_up[rank] -= copies, own->face_up_size -= copies;
        discard(game, own, rank, copies);
    }
    if (++game->steps >= game->max_steps && game->winner == EMPTY) game->winner = CUT_OFF; /* R21 */
}

/* Play uniformly random legal actions, dealing anew after each game.
 *
 * streams[0] shuffles, streams[1] picks. Gives the number of games finished; the checksum
 * takes in each action, a bit of the mask that it was picked under, and each winner. */
int64_t play(uint64_t *streams, int num_seats, int max_steps, int64_t num_actions,
             uint64_t *checksum) {
    Game game = {.num_seats = num_seats, .max_steps = max_steps};
    Legal legal;
    uint64_t sum = 0;
    int64_t num_games = 0;
    deal(&game, &streams[0]);
    for (int64_t i = 0; i < num_actions; i++) {
        list_legal(&game, &legal);
        int action = legal.ids[random_below(&streams[1], legal.count)];
        sum = sum * 0x9E3779B97F4A7C15u + action + (legal.mask[sum >> 58] << 8);
        apply_action(&game, action);
        if (game.winner != EMPTY) {
            num_games++;
            sum += (uint64_t)(game.winner + 3) << 16;
            deal(&game, &streams[0]);
        }
    }
    *checksum = sum;
    return num_games;
}
