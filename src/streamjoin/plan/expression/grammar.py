"""The grammar of the declared subset: from tokens to the typed tree. It follows Spark's own grammar, level by level:

    expression  = conjunction { OR conjunction }
    conjunction = negation { AND negation }
    negation    = (NOT | !) negation | comparison [predicate]
    predicate   = IS [NOT] (NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM comparison)
                | [NOT] (BETWEEN comparison AND comparison | IN (expression, ...) | LIKE comparison [ESCAPE string])
    comparison  = sum { (= | == | <=> | <> | != | < | <= | > | >=) sum }
    sum         = product { (+ | -) product }
    product     = unary { (* | / | %) unary }
    unary       = (- | +) unary | primary { :: type }
    primary     = literal | column { . field } | (expression) | CAST(expression AS type) | abs(expression)
                | greatest(expression, ...) | least(expression, ...)

Why not sqlglot's tree: it is made for rewriting between dialects. It forgets how literals were written (which types
them in Spark), splits `'it''s'` in two, and has other precedences in places. sqlglot has the word about what is a
correct expression and what is a column (see `parse`); a correct one that this grammar cannot read is `Outside`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from streamjoin.plan.expression import literals
from streamjoin.plan.expression.lexer import Token
from streamjoin.plan.expression.sqltypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    MAX_DIGITS,
    SMALLINT,
    STRING,
    TINYINT,
    VOID,
    SqlType,
)
from streamjoin.plan.expression.tree import (
    Field,
    Literal,
    Node,
    Outside,
    arithmetic,
    compare,
    explicit_cast,
    extreme,
    is_null,
    like,
    logical,
    member,
    sign,
)

_COMPARISONS = {"=": "=", "==": "=", "<=>": "<=>", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_CONSTANTS = {"TRUE": Literal(BOOLEAN, True), "FALSE": Literal(BOOLEAN, False), "NULL": Literal(VOID, None)}
_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_TYPES = {
    **dict.fromkeys(("TINYINT", "BYTE"), TINYINT),
    **dict.fromkeys(("SMALLINT", "SHORT"), SMALLINT),
    **dict.fromkeys(("INT", "INTEGER"), INT),
    **dict.fromkeys(("BIGINT", "LONG"), BIGINT),
    **dict.fromkeys(("FLOAT", "REAL"), FLOAT),
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
}
_OTHER_INTERVAL = "an INTERVAL that is not plainly written in weeks, days, hours, minutes, seconds or parts of them"
_END = Token("end", "", -1)
# What may come behind an operand. Anything else is an operator outside the subset, and is the one to name: types that
# do not fit an operator further left are only its consequence.
_BEHIND = {*_COMPARISONS, *"+-*/%),", "::", "AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "ESCAPE", "AS"}

Made = TypeVar("Made")


def read(tokens: Sequence[Token], fields: Mapping[int, tuple[Field | None, int]]) -> Node:
    """The tree of the tokens. `fields` has, by the offset where it begins, each column and the offset where it ends; no
    column where its type is not known.

    >>> from streamjoin.plan.expression.lexer import tokens
    >>> read(tokens("x > 1"), {0: (Field(INT, 0, "x"), 1)}).operation
    '>'
    """
    reader = _Reader(tokens, fields)
    tree = reader.expression()
    if reader.next is not _END:
        raise reader.outside()
    return tree


class _Reader:
    """Recursive descent: one method per rule, `at` is the next token."""

    def __init__(self, tokens: Sequence[Token], fields: Mapping[int, tuple[Field | None, int]]) -> None:
        self.tokens = tokens
        self.fields = fields
        self.at = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def take(self) -> Token:
        token = self.next
        self.at += 1
        return token

    def accept(self, *keywords: str) -> bool:
        """Step over the keywords if all of them come next."""
        coming = self.tokens[self.at : self.at + len(keywords)]
        if tuple(token.keyword for token in coming) != keywords:
            return False
        self.at += len(keywords)
        return True

    def expect(self, keyword: str) -> None:
        if not self.accept(keyword):
            raise self.outside()

    def outside(self) -> Outside:
        """What comes next is correct (sqlglot read it), but not in the subset."""
        token = self.next
        if token.name and self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].keyword == "(":
            return self.mark(Outside(f"the function {token.name.lower()}()"), token)
        return self.mark(Outside(token.text.upper() if token.kind == "word" else token.text), token)

    def mark(self, outside: Outside, token: Token) -> Outside:
        if outside.at is None:
            outside.at = token.start
        return outside

    def build(self, token: Token, make: Callable[..., Made], *arguments: object) -> Made:
        """Build a node, or a part of one; what it finds outside the subset is at this token."""
        try:
            return make(*arguments)
        except Outside as outside:
            raise self.mark(outside, token) from None

    def expression(self) -> Node:
        return self.chain("OR", self.conjunction)

    def conjunction(self) -> Node:
        return self.chain("AND", self.negation)

    def chain(self, operator: str, operand: Callable[[], Node]) -> Node:
        left = operand()
        while self.next.keyword == operator:
            token = self.take()
            left = self.build(token, logical, operator, left, operand())
        return left

    def negation(self) -> Node:
        token = self.next
        if self.accept("NOT") or self.accept("!"):
            return self.build(token, logical, "NOT", self.negation())
        return self.predicate(self.comparison())

    def predicate(self, value: Node) -> Node:
        token = self.next
        if self.accept("IS"):
            negated = self.accept("NOT")
            result = self.is_predicate(token, value)
        else:
            negated = self.accept("NOT")
            if self.accept("BETWEEN"):
                low = self.build(token, compare, ">=", value, self.comparison())
                self.expect("AND")
                result = logical("AND", low, self.build(token, compare, "<=", value, self.comparison()))
            elif self.accept("IN", "("):
                result = self.build(token, member, value, self.items())
            elif self.accept("LIKE"):
                pattern = self.comparison()
                escape = self.string() if self.accept("ESCAPE") else "\\"
                result = self.build(token, like, value, pattern, escape)
            elif negated:
                raise self.outside()
            else:
                return value
        return logical("NOT", result) if negated else result

    def is_predicate(self, token: Token, value: Node) -> Node:
        if self.accept("NULL") or self.accept("UNKNOWN"):
            return is_null(value)
        if self.next.keyword in ("TRUE", "FALSE"):
            return self.build(token, compare, "<=>", value, _CONSTANTS[self.take().keyword])
        if self.accept("DISTINCT", "FROM"):
            return logical("NOT", self.build(token, compare, "<=>", value, self.comparison()))
        raise self.outside()

    def items(self) -> list[Node]:
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        self.expect(")")
        return found

    def comparison(self) -> Node:
        left = self.sum()
        while self.next.keyword in _COMPARISONS:
            token = self.take()
            left = self.build(token, compare, _COMPARISONS[token.keyword], left, self.sum())
        return left

    def sum(self) -> Node:
        return self.operators("+-", self.product)

    def product(self) -> Node:
        return self.operators("*/%", self.unary)

    def operators(self, symbols: str, operand: Callable[[], Node]) -> Node:
        left = operand()
        while self.next.kind == "symbol" and self.next.text in symbols:
            token = self.take()
            left = self.build(token, arithmetic, token.text, left, operand())
        return left

    def unary(self) -> Node:
        token = self.next
        if self.accept("-"):
            if self.next.kind == "number":  # in Spark the minus belongs to the literal
                return self.casts(self.build(token, literals.number, self.take().text, True))
            return self.build(token, sign, "-", self.unary())
        if self.accept("+"):
            return self.build(token, sign, "+", self.unary())
        return self.casts(self.primary())

    def casts(self, value: Node) -> Node:
        while self.next.keyword == "::":
            token = self.take()
            value = self.build(token, explicit_cast, value, self.type())
        if self.next is not _END and self.next.keyword not in _BEHIND:
            raise self.outside()
        return value

    def primary(self) -> Node:
        token = self.next
        if token.start in self.fields:
            field, end = self.fields[token.start]
            if field is None:
                raise self.mark(Outside("a field taken from what is not a struct"), token)
            while self.next is not _END and self.next.start < end:
                self.at += 1
            return field
        if token.kind == "number":
            return self.build(token, literals.number, self.take().text)
        if token.kind == "string":
            return Literal(STRING, self.string())
        if token.keyword in _CONSTANTS:
            return _CONSTANTS[self.take().keyword]
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self.accept("ABS", "("):
            inner = self.build(token, sign, "abs", self.expression())
            self.expect(")")
            return inner
        if self.accept("GREATEST", "(") or self.accept("LEAST", "("):
            operands = [self.expression()]
            while self.accept(","):
                operands.append(self.expression())
            inner = self.build(token, extreme, token.keyword.lower(), operands)
            self.expect(")")
            return inner
        if self.accept("CAST", "("):
            inner = self.expression()
            self.expect("AS")
            inner = self.build(token, explicit_cast, inner, self.type())
            self.expect(")")
            return inner
        follows = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else _END
        if token.keyword in _MOMENTS and follows.kind == "string":
            self.take()
            return self.build(token, literals.moment, token.keyword, self.string())
        if token.keyword == "INTERVAL" and (follows.kind in ("string", "number") or follows.text in ("+", "-")):
            self.take()
            return self.build(token, lambda: literals.interval(self.amounts()))
        raise self.outside()

    def string(self) -> str:
        token = self.take()
        if token.kind != "string" or self.next.kind == "string":  # Spark joins strings that stand side by side
            raise self.mark(Outside("a string in several pieces"), token)
        return self.build(token, literals.string, token.text)

    def amounts(self) -> list[tuple[str, str]]:
        """An interval's amounts and units: `5 SECONDS`, `1 HOUR 30 MINUTES`, `'5' SECOND` or `'1 hour 30 minutes'`."""
        found: list[tuple[str, str]] = []
        while self.next.kind in ("string", "number") or (not found and self.next.text in ("+", "-")):
            minus = self.take().text if self.next.text in ("+", "-") else ""
            amount = minus + (self.string() if self.next.kind == "string" else self.take().text).strip()
            if not literals.is_unit(self.next.text):
                words = amount.split()
                if found or minus or len(words) < 2 or len(words) % 2:
                    raise Outside(_OTHER_INTERVAL)
                return list(zip(words[::2], words[1::2], strict=True))
            found.append((amount, self.take().text))
        # `HOUR TO SECOND` and `INTERVAL 1 HOUR -5 MINUTES` (one interval, or a difference?) are left to Spark.
        ahead = self.tokens[self.at : self.at + 3]
        signed = len(ahead) == 3 and ahead[0].text in ("+", "-") and literals.is_unit(ahead[2].text)
        if self.next.keyword == "TO" or signed:
            raise Outside(_OTHER_INTERVAL)
        return found

    def type(self) -> SqlType:
        token = self.take()
        if token.keyword in _TYPES:
            return _TYPES[token.keyword]
        if token.keyword not in ("DECIMAL", "DEC", "NUMERIC"):
            raise self.mark(Outside(f"a cast to {token.text.lower()}"), token)
        sizes = [10, 0]  # Spark's DECIMAL without sizes
        if self.accept("("):
            sizes = [self.size(), self.size() if self.accept(",") else 0]
            self.expect(")")
        digits, scale = sizes
        if not scale <= digits <= MAX_DIGITS:
            raise self.mark(Outside(f"a cast to decimal({digits},{scale})"), token)
        return SqlType("decimal", digits, scale)

    def size(self) -> int:
        if not self.next.text.isdecimal():
            raise self.outside()
        return int(self.take().text)
