"""Merging mechanisms written out with sets of symbols, to compare the fast ones with.

A release is a list of blocks, sets of symbols of X; g is a function of a posterior and a prior.
"""

from reference import entropy


def risk(p_sx, block, g):
    """Return g of the posterior of S given a block."""
    columns = p_sx[:, sorted(block)].sum(axis=1)
    return g(columns / columns.sum(), p_sx.sum(axis=1))


def leakage(p_sx, blocks, g, scope):
    risks = [risk(p_sx, block, g) for block in blocks]
    if scope == "per_output":
        return max(risks)
    return sum(p_sx[:, sorted(block)].sum() * r for block, r in zip(blocks, risks, strict=True))


def utility(p_sx, blocks):
    """Return I(X;Y) = H(X) - sum P(B) H(X|B)."""
    p_x, lost = p_sx.sum(axis=0), 0.0
    for block in blocks:
        p_block = p_x[sorted(block)]
        lost += p_block.sum() * entropy(p_block / p_block.sum())
    return entropy(p_x) - lost


def partitions(symbols):
    """Yield every partition of a list of symbols."""
    if not symbols:
        yield []
        return
    first, *rest = symbols
    for blocks in partitions(rest):
        yield [{first}, *blocks]
        for i, block in enumerate(blocks):
            yield [*blocks[:i], {first} | block, *blocks[i + 1 :]]


def best_partition(p_sx, threshold, g, scope):
    """Return the largest utility of a partition within the threshold."""
    every = partitions(list(range(p_sx.shape[1])))
    return max(utility(p_sx, b) for b in every if leakage(p_sx, b, g, scope) <= threshold)


def watchdog(p_sx, threshold, g, scope):
    symbols = range(p_sx.shape[1])
    order = sorted(symbols, key=lambda x: -risk(p_sx, {x}, g))
    size = sum(risk(p_sx, {x}, g) > threshold for x in symbols) if scope == "per_output" else 1
    while True:
        merged = [set(order[:size])] if size else []
        blocks = merged + [{x} for x in order[size:]]
        if leakage(p_sx, blocks, g, scope) <= threshold:
            return blocks
        size += 1


def subset_merging(p_sx, threshold, g, scope):
    """Return the first release on the way to private blocks that keeps the budget."""
    for blocks in subset_mergers(p_sx, threshold, g):
        if leakage(p_sx, blocks, g, scope) <= threshold:
            return blocks
    raise AssertionError("the last release is private")


def subset_mergers(p_sx, threshold, g):
    """Yield all releases on the way to private blocks, as lists of blocks."""
    n_x = p_sx.shape[1]

    def release(blocks):
        merged = set().union(*blocks)
        return [*blocks, *({x} for x in range(n_x) if x not in merged)]

    risky = {x for x in range(p_sx.shape[1]) if risk(p_sx, {x}, g) > threshold}
    harmless = set(range(p_sx.shape[1])) - risky
    blocks = []
    while risky:
        block = {max(risky, key=lambda x: risk(p_sx, {x}, g))}
        risky -= block
        yield release([*blocks, block])
        while risk(p_sx, block, g) > threshold and risky:
            x = min(risky, key=lambda x: risk(p_sx, block | {x}, g))
            block, risky = block | {x}, risky - {x}
            yield release([*blocks, block])
        blocks.append(block)
    while blocks and risk(p_sx, blocks[-1], g) > threshold and len(blocks) > 1:
        last = blocks.pop()
        best = min(blocks, key=lambda b: risk(p_sx, last | b, g))
        blocks.remove(best)
        blocks.append(last | best)
        yield release(blocks)
    while blocks and risk(p_sx, blocks[-1], g) > threshold:
        last = blocks.pop()
        x = min(harmless, key=lambda x: risk(p_sx, last | {x}, g))
        harmless -= {x}
        blocks.append(last | {x})
        yield release(blocks)
    yield release(blocks)


def greedy_funnel(p_sx, threshold, g):
    """Return the blocks for the scope "average"."""
    blocks = [{x} for x in range(p_sx.shape[1])]
    while leakage(p_sx, blocks, g, "average") > threshold:
        merged = [
            [b for b in blocks if b not in (one, other)] + [one | other]
            for i, one in enumerate(blocks)
            for other in blocks[:i]
        ]
        blocks = min(merged, key=lambda b: leakage(p_sx, b, g, "average"))
    return blocks
