"""How a stage runs inside one task: intake, fragment, outlet. Packets in, packets out; no Spark in here."""
