"""The rules a second time: plain, slow and obvious, written from the rule texts alone.

It shares nothing with `threeup_env`, not even a table, so that an agreement of
the two means something. Cards are names in lists, in the order in which they
would lie on a table; rule numbers (R1..R22) are those of README.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

RANKS: Final = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "C", "C+1", "C+2")
"""Every rank, ascending (R3)."""

NUMBERS: Final = RANKS[:10]
CLEARS: Final = ("C", "C+1", "C+2")
EXTRA_DISCARDS: Final = {"C+1": 1, "C+2": 2}
VARIANT_IDS: Final = {"standard": 0, "listed": 1, "mini": 2}
STEPS_SHOWN: Final = 127
MOST_UNKNOWN: Final = 3
"""Cards in a hand that not everybody has seen, at most, once its seat has laid (R15, R22)."""

Observation = dict[str, list[int] | int]


class Layout(NamedTuple):
    """What a variant puts into the deck and deals to a seat (R2, R4)."""

    deck: dict[str, int]
    hand_size: int
    num_face_up: int
    num_face_down: int


LAYOUTS: Final = {
    "standard": Layout(dict.fromkeys(NUMBERS, 7) | {"C": 6, "C+1": 6, "C+2": 2}, 3, 3, 3),
    "listed": Layout(dict.fromkeys(NUMBERS, 6) | {"C": 6, "C+1": 6, "C+2": 2}, 3, 3, 3),
    "mini": Layout({"1": 3, "2": 3, "C": 2, "C+1": 1, "C+2": 1}, 2, 1, 1),
}


def counts(cards: list[str]) -> list[int]:
    """Copies of each rank, ascending by rank."""
    copies = dict.fromkeys(RANKS, 0)
    for card in cards:
        copies[card] += 1
    return list(copies.values())


def without(cards: list[str], taken: list[str]) -> list[str]:
    """The cards that stay if each of `taken` is taken away, as far as it is there."""
    left = list(cards)
    for card in taken:
        if card in left:
            left.remove(card)
    return left


class ReferenceGame:
    """One game, its cards dealt from a given deck.

    Args:
        num_players: seats at the table.
        variant: "standard", "listed" or "mini".
        deck: rank ids, front first; the whole deck of the variant.
        max_steps: the action after which a game without a winner is cut off (R21).

    The front of `draw_pile` and of each `face_down` is index 0; the top of `pile`
    is its last card.
    """

    def __init__(
        self, num_players: int, variant: str, deck: Sequence[int], max_steps: int = 1000
    ) -> None:
        self.num_players = num_players
        self.variant = variant
        self.layout = LAYOUTS[variant]
        self.max_steps = max_steps
        cards = [RANKS[rank] for rank in deck]
        if Counter(cards) != Counter(self.layout.deck):
            raise ValueError(f"deck: expected the deck of {variant!r}; got {cards}")

        # R4: everybody's face-down cards, then everybody's hand, then the draw pile.
        self.draw_pile = cards
        dealt = self.layout.hand_size + self.layout.num_face_up
        seats = range(num_players)
        self.face_down = [self._take_from_draw_pile(self.layout.num_face_down) for _ in seats]
        self.hands = [self._take_from_draw_pile(dealt) for _ in seats]
        self.face_up: list[list[str]] = [[] for _ in seats]
        self.pile: list[str] = []
        self.out_of_play: list[str] = []
        self.known: list[list[str]] = [[] for _ in seats]
        """For each seat the cards that everybody saw go into its hand (R22)."""
        self.bounds: list[list[int]] = [[] for _ in seats]
        """For each seat, of its other cards: what rank, counted from 0, each lies below (R22)."""

        self.seat = 0
        self.laying = self.layout.num_face_up
        """Cards that the seat to act still has to lay; 0 once all have laid (R5)."""
        self.owed = 0
        """Extra discards owed (R13)."""
        self.just_cleared_with_extra = False
        """The last action of this turn was a Clear +1 or Clear +2 (R12)."""
        self.steps = 0
        self.winner: int | None = None
        self.cut_off = False

    def legal_actions(self) -> list[str]:
        """Names of the actions open to `seat`, in the order of the action ids."""
        if self.winner is not None or self.cut_off:
            return []
        if self.laying > 0:
            return [f"lay {rank}" for rank in RANKS if rank in self.hands[self.seat]]  # R5
        actions = []
        zone = self._active_zone()
        if zone in ("hand", "face_up"):
            actions = self._plays(self._cards_in(zone))
        must_pick_up = zone in ("hand", "face_up") and actions == []  # R14
        if self._may_draw():
            actions.append("draw")
        if zone == "face_down":
            actions.append("flip")  # R18
        if must_pick_up:
            actions.append("pick up")
        return actions

    def apply(self, name: str) -> None:
        """Let `seat` take the action of that name."""
        if name not in self.legal_actions():
            raise ValueError(f"seat {self.seat}: expected {self.legal_actions()}; got {name!r}")
        self.steps += 1
        if name.startswith("lay "):
            self._lay(name[len("lay ") :])
        elif name.startswith("play "):
            rank, _, copies = name[len("play ") :].partition(" x")
            self._play(rank, int(copies or 1))
        elif name == "draw":
            self.just_cleared_with_extra = False
            self._fill_hand()
        elif name == "flip":
            self._flip()
        elif name == "pick up":
            self._pick_up()
        if self.winner is None and self.steps == self.max_steps:  # R21
            self.cut_off = True

    def cards_left(self) -> list[int]:
        """How many cards each seat still holds: hand, face-up and face-down (R1)."""
        return [
            len(self.hands[seat]) + len(self.face_up[seat]) + len(self.face_down[seat])
            for seat in range(self.num_players)
        ]

    def rewards(self) -> list[float]:
        """What each seat gets at the end; zeros while the game runs.

        Who hasn't won gets a loser's reward, in a game that was cut off everybody (R21).
        """
        if self.winner is None and not self.cut_off:
            return [0.0] * self.num_players
        losers = [-1 / (self.num_players - 1)] * self.num_players
        return [1.0 if seat == self.winner else lost for seat, lost in enumerate(losers)]

    def observe(self, seat: int) -> Observation:
        """What `seat` may know, by field name, in the order of the flat observation."""
        running = self.winner is None and not self.cut_off
        fields: Observation = {
            "variant": VARIANT_IDS[self.variant],
            "seat": seat,
            "laying": self.laying,
            "owed": self.owed,
            "may_draw": int(running and self._may_draw()),
            "steps_left": min(STEPS_SHOWN, self.max_steps - self.steps),
            "draw_pile_size": len(self.draw_pile),
            "top": counts(self.pile[-1:]),
            "pile": counts(self.pile),
            "out_of_play": counts(self.out_of_play),
            "unseen": counts(self._unseen_by(seat)),
            "exposed": counts(self.known[seat]),
        }
        for block in range(self.num_players):
            other = (seat + block) % self.num_players
            hand, face_up = self.known[other], self.face_up[other]
            if other == seat:
                hand = self.hands[seat]
            elif self.laying > 0:
                face_up = []  # R5
            fields[f"acting[{block}]"] = int(running and other == self.seat)
            fields[f"hand_size[{block}]"] = len(self.hands[other])
            fields[f"face_down_size[{block}]"] = len(self.face_down[other])
            fields[f"hand[{block}]"] = counts(hand)
            fields[f"face_up[{block}]"] = counts(face_up)
            below = sorted(self.bounds[other])
            fields[f"bounds[{block}]"] = below + [0] * (MOST_UNKNOWN - len(below))
        return fields

    def _unseen_by(self, seat: int) -> list[str]:
        """Every card that lies where `seat` can't tell it, gathered place by place (R22)."""
        unseen = list(self.draw_pile)
        for other in range(self.num_players):
            unseen += self.face_down[other]
            if other != seat:
                unseen += without(self.hands[other], self.known[other])
                if self.laying > 0:
                    unseen += self.face_up[other]  # R5
        return unseen

    def _active_zone(self) -> str:
        """Where the next discard must come from: "none" if there is no such zone (R16, R17)."""
        if self.hands[self.seat]:
            return "hand"
        if self.draw_pile:
            return "none"
        return "face_up" if self.face_up[self.seat] else "face_down"

    def _cards_in(self, zone: str) -> list[str]:
        return self.hands[self.seat] if zone == "hand" else self.face_up[self.seat]

    def _plays(self, cards: list[str]) -> list[str]:
        """Every discard of equal cards that the top of the pile allows (R6, R7, R8)."""
        plays = []
        for rank in RANKS:
            most = cards.count(rank)
            if most > 1 and rank in EXTRA_DISCARDS:
                most = 1  # R8
            if most > 0 and self._fits(rank):
                plays.append(f"play {rank}")
                plays += [f"play {rank} x{copies}" for copies in range(2, most + 1)]
        return plays

    def _fits(self, rank: str) -> bool:
        """Whether a card of this rank may go onto the pile (R6, R7)."""
        return self.pile == [] or RANKS.index(rank) >= RANKS.index(self.pile[-1])

    def _may_draw(self) -> bool:
        """R12; the hand's size is the variant's."""
        hand_is_short = len(self.hands[self.seat]) < self.layout.hand_size
        return self.just_cleared_with_extra and hand_is_short and len(self.draw_pile) > 0

    def _lay(self, rank: str) -> None:
        self.hands[self.seat].remove(rank)
        self.face_up[self.seat].append(rank)
        self.laying -= 1
        if self.laying == 0:
            self.bounds[self.seat] = [len(RANKS) for _ in self.hands[self.seat]]
            self._pass_on()
            if self.seat != 0:
                self.laying = self.layout.num_face_up  # the next seat lays (R5)

    def _play(self, rank: str, copies: int) -> None:
        zone = self._active_zone()
        for _ in range(copies):
            self._cards_in(zone).remove(rank)
            if zone == "hand":
                self._forget(rank)
        self._discard(rank, copies)

    def _forget(self, rank: str) -> None:
        """One card has been played from hand: a known one if there is one, else any (R22)."""
        known, bounds = self.known[self.seat], self.bounds[self.seat]
        if rank in known:
            known.remove(rank)
        else:
            bounds.remove(min(below for below in bounds if below > RANKS.index(rank)))

    def _flip(self) -> None:
        card = self.face_down[self.seat].pop(0)  # the first dealt is turned first (R18)
        if self._fits(card):
            self._discard(card, 1)
        else:
            self._take_into_hand([card])
            self._pick_up()

    def _discard(self, rank: str, copies: int) -> None:
        """Put cards that have left their zone onto the pile, with all that follows."""
        if self.owed > 0:
            self.owed -= 1  # R13
        self.owed += EXTRA_DISCARDS.get(rank, 0)  # R11, R12
        self.just_cleared_with_extra = rank in EXTRA_DISCARDS
        self.pile += [rank] * copies
        if rank in CLEARS or self._run_on_top() >= 3:  # R9, R10, R11, R12
            self.out_of_play += self.pile
            self.pile = []
        if self.cards_left()[self.seat] == 0:  # R20
            self.winner = self.seat
            self.owed = 0
            return
        owed_discards_lapse = self._active_zone() == "none" and not self._may_draw()  # R17
        if self.owed == 0 or owed_discards_lapse:
            self._fill_hand()  # R15
            self._pass_on()

    def _run_on_top(self) -> int:
        """How many equal cards lie on top of the pile, looked at one by one from the top (R9)."""
        run = 0
        for card in reversed(self.pile):
            if card != self.pile[-1]:
                break
            run += 1
        return run

    def _pick_up(self) -> None:
        """Take the pile into hand; that ends the turn at once, nothing is drawn (R14).

        Everybody sees that no card in hand could be played (R22).
        """
        top = RANKS.index(self.pile[-1])
        self.bounds[self.seat] = [min(below, top) for below in self.bounds[self.seat]]
        self._take_into_hand(self.pile)
        self.pile = []
        self._pass_on()

    def _take_into_hand(self, cards: list[str]) -> None:
        """Move cards that all have seen into the hand of the seat to act (R22)."""
        self.hands[self.seat] += cards
        self.known[self.seat] += cards

    def _fill_hand(self) -> None:
        missing = max(0, self.layout.hand_size - len(self.hands[self.seat]))
        drawn = self._take_from_draw_pile(missing)
        self.hands[self.seat] += drawn
        self.bounds[self.seat] += [len(RANKS)] * len(drawn)

    def _take_from_draw_pile(self, wanted: int) -> list[str]:
        """Up to so many cards from the front, as far as the draw pile lasts."""
        taken = self.draw_pile[:wanted]
        self.draw_pile = self.draw_pile[wanted:]
        return taken

    def _pass_on(self) -> None:
        """End the turn: nothing is owed any more and the next seat is to act (R1, R14, R17)."""
        self.owed = 0
        self.just_cleared_with_extra = False
        self.seat = (self.seat + 1) % self.num_players
