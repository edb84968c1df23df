// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Which transmit queue (an odd number) is served next: deficit round robin, charged in bytes on the
// wire. A list of queues with work, each at most once in it. The front is served while its balance
// is not negative, then goes to the end, in debt; a queue in debt that comes to the front gets
// Quantum, and goes to the end unserved if it is in debt still. What a frame costs is charged when
// it was read, further headers when it is cut into segments. Nothing is charged while no other
// queue waits.
//
// A queue taken from the list is returned by `ret_*`; it goes back to the end when it has work, or
// when a work pulse came since its last return, so that no pulse is lost whatever its timing
// against the look-up. Two bits a queue, in RAM: listed (or being served), and pulsed meanwhile.
// They and the balances are cleared after a reset, one queue a cycle; no work comes in that time.
//
// A queue in two cycles: its balance is read, then judged. A work pulse goes before a return, both
// before a queue in debt is passed over.
`include "ferronic_assert.svh"
module tx_sched
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned QueuePairs = 4,
  parameter int unsigned Quantum = 2048
) (
  input  logic    clk_i,
  input  logic    rst_ni,
  input  logic    fn_rst_i,
  output logic    idle_o,        // no queue waits

  input  logic    work_valid_i,
  input  qid_t    work_q_i,
  output qid_t    check_q_o,
  input  logic    has_work_i,

  input  logic    seek_i,        // a queue is wanted, none is being served
  output logic    next_valid_o,
  output qid_t    next_q_o,
  input  logic    next_take_i,
  input  tx_len_t cost_i,        // of the frame that is being read
  output logic    keep_o,        // the queue may go on behind it: its turn, or no other waits

  input  logic    ret_valid_i,
  output logic    ret_ready_o,
  input  qid_t    ret_q_i,
  input  logic    ret_off_i,     // list it again only after a pulse, whatever it has

  // Charges: of the queue that is served, for a frame of so many bytes with its virtio header; and
  // for headers of segments. At most one of each in four cycles.
  input  logic    spent_i,
  input  tx_len_t spent_bytes_i,
  input  logic    extra_i,
  input  qid_t    extra_q_i,
  input  logic [7:0] extra_bytes_i
);
  localparam int unsigned PairW = (QueuePairs > 1) ? $clog2(QueuePairs) : 1;
  localparam int unsigned Depth = 1 << PairW;
  // Debts up to 512 KiB: some frames of 64 KiB, with headers.
  localparam int unsigned BalanceW = 20;
  typedef logic [PairW-1:0]    pair_t;
  typedef logic [BalanceW-1:0] balance_t;   // two's complement

  if (QueuePairs < 1 || QueuePairs > 64) begin : g_bad_pairs
    $error("%m: QueuePairs (%0d) must be 1 to 64", QueuePairs);
  end
  if (Quantum < 64 || Quantum > 65536) begin : g_bad_quantum
    $error("%m: Quantum (%0d) must be 64 to 65536", Quantum);
  end

  typedef struct packed {
    logic pulsed;
    logic listed;
  } state_t;

  logic   clear_q, work_q;       // a work pulse, a cycle late
  pair_t  clear_pair_q, work_pair_q;
  state_t old_state, new_state;
  logic   state_we, enter;
  pair_t  pair, state_pair;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) work_q <= 1'b0;
    else work_q <= work_valid_i;
    work_pair_q <= work_q_i[PairW:1];
  end
  assign pair        = work_q ? work_pair_q : ret_q_i[PairW:1];
  assign state_pair  = clear_q ? clear_pair_q : pair;
  assign check_q_o   = ret_q_i;
  assign ret_ready_o = !work_q && !clear_q;

  always_comb begin
    state_we  = 1'b0;
    enter     = 1'b0;
    new_state = '0;
    if (clear_q) begin
      state_we = 1'b1;
    end else if (work_q) begin
      state_we         = 1'b1;
      enter            = !old_state.listed;
      new_state.listed = 1'b1;
      new_state.pulsed = old_state.listed;
    end else if (ret_valid_i) begin
      state_we         = 1'b1;
      enter            = old_state.pulsed || (has_work_i && !ret_off_i);
      new_state.listed = enter;
    end
  end

  prim_lutram #(.Width($bits(state_t)), .Depth(Depth)) u_state (
    .clk_i,
    .we_i   (state_we),
    .waddr_i(state_pair),
    .wdata_i(new_state),
    .raddr_i(pair),
    .rdata_o(old_state)
  );

  // ---------------------------------------------------------------- list
  logic           list_valid, list_ready, pass;
  pair_t          front;
  logic [PairW+1:0] list_level;
  wire            push = enter || pass;
  // All queues, and room to put one behind the others.
  prim_fifo #(.Width(PairW), .Depth(2 * Depth)) u_list (
    .clk_i, .rst_ni,
    .clr_i     (fn_rst_i),
    .wr_valid_i(push),
    .wr_ready_o(list_ready),
    .wr_data_i (enter ? pair : front),
    .rd_valid_o(list_valid),
    .rd_ready_i(next_take_i || pass),
    .rd_data_o (front),
    .level_o   (list_level)
  );

  // ---------------------------------------------------------------- balances
  balance_t   left_q;      // of the queue that is served
  logic       spent_q, extra_q;
  pair_t      served_q, extra_pair_q;
  tx_len_t    spent_bytes_q;
  logic [7:0] extra_bytes_q;
  balance_t   balance, change, sum;
  wire        charge = spent_q || extra_q;
  wire pair_t at     = spent_q ? served_q : extra_q ? extra_pair_q : front;
  wire        last_one = (list_level == (PairW + 2)'(1));
  wire        in_debt = balance[BalanceW-1];
  // Of the front, a cycle after it was looked at: in debt, and by more than a Quantum.
  logic       seen_q, debt_q, deep_q;

  // A frame costs what is behind its virtio header.
  always_comb begin
    if (spent_q) change = balance_t'(VirtioHdrBytes) - balance_t'(spent_bytes_q);
    else if (extra_q) change = -balance_t'(extra_bytes_q);
    else change = balance_t'(Quantum);
  end
  assign sum = balance + change;
  // A debt that cannot be written down stays as it is.
  wire charged = charge && list_valid && !(in_debt && !sum[BalanceW-1]);

  assign next_valid_o = seen_q && !charge && (!debt_q || last_one);
  assign next_q_o     = qid_t'({front, 1'b1});
  // A visit to a queue in debt; it is served as soon as that pays it off.
  wire   visit        = seek_i && seen_q && !charge && debt_q && !last_one && !work_q &&
                        !ret_valid_i;
  assign pass         = visit && deep_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) seen_q <= 1'b0;
    else seen_q <= list_valid && !charge && !next_take_i && !visit;
    debt_q <= in_debt;
    deep_q <= sum[BalanceW-1];
  end

  prim_lutram #(.Width(BalanceW), .Depth(Depth)) u_balance (
    .clk_i,
    .we_i   (clear_q || charged || visit),
    .waddr_i(clear_q ? clear_pair_q : at),
    .wdata_i(clear_q ? '0 : sum),
    .raddr_i(at),
    .rdata_o(balance)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      spent_q <= 1'b0;
      extra_q <= 1'b0;
    end else begin
      spent_q <= spent_i;
      if (extra_i) extra_q <= 1'b1;
      else if (!spent_q) extra_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (next_take_i) begin
      served_q <= front;
      left_q   <= balance;
    end else if (spent_q) begin
      left_q <= charged ? sum : balance;
    end
    if (spent_i) spent_bytes_q <= spent_bytes_i;
    if (extra_i) begin
      extra_pair_q  <= extra_q_i[PairW:1];
      extra_bytes_q <= extra_bytes_i;
    end
  end
  // Exact, so that a turn ends in debt: what is left over would cost a visit without a grant.
  wire balance_t behind = left_q - balance_t'(cost_i) + balance_t'(VirtioHdrBytes);
  assign keep_o = !behind[BalanceW-1] || !list_valid;
  assign idle_o = !list_valid && !clear_q && !work_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clear_q      <= 1'b1;
      clear_pair_q <= '0;
    end else begin
      if (fn_rst_i) clear_q <= 1'b1;
      else if (clear_pair_q == '1) clear_q <= 1'b0;
      if (clear_q) clear_pair_q <= clear_pair_q + 1'b1;
    end
  end

  // Bits of queue numbers beyond the configured pairs.
  logic unused;
  assign unused = ^{work_q_i, ret_q_i, extra_q_i};

  `FERRONIC_ASSERT(ListHasRoom, !push || list_ready, clk_i, rst_ni)
  `FERRONIC_ASSERT(NoWorkInClear, !(work_q && clear_q), clk_i, rst_ni)
  `FERRONIC_ASSERT(ChargesApart, !(extra_i && extra_q && spent_q), clk_i, rst_ni)
endmodule
