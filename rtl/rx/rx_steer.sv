// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Steers a received frame to one of the pairs in use.
//
// By receive-side scaling: the lowest bits of the frame's hash choose an entry of the table, frames
// without a hash go to a pair of their own; what is not in use counts as pair 0. Otherwise the flow
// goes to the pair that sent to it last, if it is known (S3-R9), or is spread by the hash that
// header_parser has of addresses and ports.
//
// One RAM has both: the two halves of the table, one of which is in use and one is staged, and the
// flows. A flow has one place; the one that is sent to last has it. It is known by that place and
// 28 bits of its hashes: two flows that agree in them share a pair, which does no harm. Flows are
// forgotten in the third period in which nothing was sent to them: as a period ends all of them
// are visited, in cycles in which no frame is looked up.
//
// A frame takes four cycles, and the next may be taken when it leaves. A visit of all flows takes
// three cycles each, or more beside frames. After a function reset, or when flows are not to be
// followed any more, all are forgotten at once; it takes a cycle each until the first is known
// again.
`include "ferronic_assert.svh"
module rx_steer
  import ferronic_pkg::*;
  import rx_pkg::*;
#(
  parameter int unsigned QueuePairs = 4,
  parameter int unsigned Flows = 256,    // places
  parameter bit          Steering = 1'b1, // otherwise frames are spread and nothing else
  parameter bit          TimeSkip = 1'b1,
  localparam int unsigned FlowW = $clog2(Flows)
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,
  input  steer_cfg_t   cfg_i,
  input  steer_write_t write_i,      // one cycle; at least four apart
  input  tx_flow_t     flow_i,       // one cycle; every second at most
  input  logic [6:0]   pairs_in_use_i,
  input  logic [63:0]  time_i,
  output logic         idle_o,       // no frame is here
  output logic         settled_o,    // nor is anything to be done with flows
  output logic         timer_armed_o, // until a period ends, in so many cycles
  output logic [31:0]  timer_left_o,

  input  logic         frame_valid_i,
  output logic         frame_ready_o,
  input  rx_frame_t    frame_i,
  output logic         frame_valid_o,
  input  logic         frame_ready_i,
  output rx_frame_t    frame_o,
  output qid_t         frame_q_o
);
  localparam int unsigned PairW = (QueuePairs > 1) ? $clog2(QueuePairs) : 1;
  typedef logic [PairW-1:0] pair_t;

  if (Flows < 256 || Flows > 4096 || (Flows & (Flows - 1)) != 0) begin : g_bad_flows
    $error("%m: Flows (%0d) must be a power of two from 256 to 4096", Flows);
  end

  // ---------------------------------------------------------------- a frame
  logic [3:0]  step_q;       // read, registered, compared, decided
  rx_frame_t   frame_q;
  logic [7:0]  mix_q;
  pair_t       pair_q;
  wire         load = frame_valid_i && frame_ready_o;
  wire rx_verdict_t verdict = frame_q.verdict;

  assign frame_ready_o = (step_q == '0) || (step_q[3] && frame_ready_i);
  assign frame_valid_o = step_q[3];
  assign frame_o       = frame_q;
  assign frame_q_o     = qid_t'({pair_q, 1'b0});
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) step_q <= '0;
    else step_q <= {step_q[2] || (step_q[3] && !frame_ready_i), step_q[1:0], load};
  end
  always_ff @(posedge clk_i) begin
    if (load) begin
      frame_q <= frame_i;
      mix_q   <= mix(frame_i.verdict.addr_hash ^ frame_i.verdict.port_hash);
    end
  end
  wire [5:0] spread = scaled_pair(mix_q, pairs_in_use_i);

  if (Steering && QueuePairs > 1) begin : g_steering
    localparam int unsigned AddrW = (FlowW > 8) ? FlowW + 1 : 9;
    localparam int unsigned TagW = 28;
    typedef logic [FlowW-1:0] place_t;
    typedef struct packed {
      logic [1:0]      age;      // 0: not known
      logic [TagW-1:0] tag;
      pair_t           pair;
    } flow_t;

    // Where a flow lies, and what it is known by.
    function automatic place_t place(input logic [15:0] addr_hash, input logic [15:0] port_hash);
      place = place_t'({addr_hash[3:0] ^ port_hash[7:4], mix(addr_hash ^ port_hash)});
    endfunction
    function automatic logic [TagW-1:0] tag(input logic [15:0] addr_hash,
                                            input logic [15:0] port_hash);
      tag = TagW'({addr_hash, port_hash});
    endfunction

    // ------------------------------------------------------------ the RAM
    logic             re, we;
    logic [AddrW-1:0] raddr, waddr;
    flow_t            rd, rd_q, wd;
    prim_ram_1r1w #(.Width($bits(flow_t)), .Depth(1 << AddrW), .InBlock(1'b1), .ZeroInit(1'b1))
    u_ram (
      .clk_i, .we_i(we && rst_ni), .waddr_i(waddr), .wdata_i(wd), .re_i(re), .raddr_i(raddr),
      .rdata_o(rd));
    // Flows below, the table above.
    function automatic logic [AddrW-1:0] entry(input logic bank, input logic [6:0] row);
      entry = AddrW'({bank, row}) | (AddrW'(1) << (AddrW - 1));
    endfunction

    // ------------------------------------------------------------ flows
    // What is sent waits for a cycle in which nothing is read, and so do entries of the table.
    logic     learn_q, table_q, clear_q, visit_q, some_q, any_q, tick, again_q;
    logic [1:0] at_q;            // of a visit: read, decided, written
    flow_t    learn_d_q, visit_d_q;
    place_t   learn_at_q, visit_at_q;
    logic     table_bank_q;
    logic [6:0] table_row_q;
    pair_t    table_d_q;
    wire      learns = flow_i.valid && cfg_i.follow && !cfg_i.steer && !clear_q;
    logic     follow_q;
    wire      forget = fn_rst_i || (follow_q && !cfg_i.follow);
    wire      visit_read = visit_q && (at_q == 2'd0) && !load && !learn_q && !table_q && !clear_q;
    wire      visit_write = visit_q && (at_q == 2'd2 || clear_q) && !load && !learn_q && !table_q;
    wire      ends = (visit_at_q == '1) && visit_write;

    assign re    = load || visit_read;
    assign raddr = !load ? AddrW'(visit_at_q) : cfg_i.steer ?
                   entry(cfg_i.bank, frame_i.verdict.rss_low & cfg_i.mask) :
                   AddrW'(place(frame_i.verdict.addr_hash, frame_i.verdict.port_hash));
    assign we    = !re && (learn_q || table_q || visit_write);
    always_comb begin
      waddr = AddrW'(visit_at_q);
      wd    = clear_q ? '0 : visit_d_q;
      if (table_q) begin
        waddr   = entry(table_bank_q, table_row_q);
        wd.pair = table_d_q;
      end
      if (learn_q) begin
        waddr = AddrW'(learn_at_q);
        wd    = learn_d_q;
      end
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        learn_q <= 1'b0;
        table_q <= 1'b0;
        visit_q <= 1'b0;
        clear_q <= 1'b0;
        any_q   <= 1'b0;
        some_q  <= 1'b0;
        again_q <= 1'b0;
        at_q    <= '0;
      end else begin
        learn_q <= learns || (learn_q && re);
        table_q <= write_i.table_we || (table_q && (re || learn_q));
        if (visit_read) at_q <= 2'd1;
        else if (at_q == 2'd1) at_q <= 2'd2;
        else if (visit_write) at_q <= '0;
        if (visit_q) begin
          if (ends) begin
            visit_q <= again_q;
            again_q <= 1'b0;
            clear_q <= 1'b0;
            any_q   <= !clear_q && (some_q || learns || (visit_d_q.age != '0));
            some_q  <= 1'b0;
          end else if (visit_write && visit_d_q.age != '0 && !clear_q) begin
            some_q <= 1'b1;
          end
        end
        if (learns) begin
          any_q  <= 1'b1;
          some_q <= 1'b1;
        end
        if (tick && any_q) begin
          visit_q <= 1'b1;
          again_q <= visit_q && !ends;
        end
        if (forget) begin
          learn_q <= 1'b0;
          at_q    <= '0;
          some_q  <= 1'b0;
          if (any_q || visit_q) begin
            visit_q <= 1'b1;
            clear_q <= 1'b1;
          end
        end
        if (fn_rst_i) table_q <= 1'b0;
      end
    end
    always_ff @(posedge clk_i) begin
      follow_q <= cfg_i.follow;
      if (forget || !visit_q) visit_at_q <= '0;
      else if (visit_write) visit_at_q <= visit_at_q + 1'b1;
      // Nothing is decided of a flow that is sent to meanwhile.
      if (at_q == 2'd1) begin
        visit_d_q     <= rd;
        visit_d_q.age <= (rd.age == '0) ? '0 : rd.age - 2'd1;
      end
      if (learns) begin
        learn_d_q  <= '{age: 2'd3, tag: tag(flow_i.addr_hash, flow_i.port_hash),
                        pair: pair_t'(flow_i.pair)};
        learn_at_q <= place(flow_i.addr_hash, flow_i.port_hash);
      end
      if (learn_q && we && learn_at_q == visit_at_q) visit_d_q <= learn_d_q;
      if (write_i.table_we) begin
        table_bank_q <= !cfg_i.bank;
        table_row_q  <= write_i.row;
        // A pair that the card does not have is never in use.
        table_d_q    <= (7'(write_i.data[5:0]) < 7'(QueuePairs)) ? pair_t'(write_i.data) : '0;
      end
    end

    // ------------------------------------------------------------ periods
    logic [1:0]  period_q;
    logic [40:0] past, span;
    assign past = time_i[40:0] >> cfg_i.period;
    assign tick = (past[1:0] != period_q);
    always_ff @(posedge clk_i) period_q <= past[1:0];
    if (TimeSkip) begin : g_left
      logic [40:0] left;
      assign span = 41'd1 << cfg_i.period;
      assign left = span - (time_i[40:0] & (span - 41'd1));
      assign timer_left_o  = (left[40:32] != '0) ? '1 : left[31:0];
      assign timer_armed_o = any_q;
    end else begin : g_no_left
      assign span = '0;
      assign timer_left_o  = '0;
      assign timer_armed_o = 1'b0;
    end
    logic unused_past;
    assign unused_past = ^{past, span};

    // ------------------------------------------------------------ decided
    logic known_q, apart_q;
    flow_t here;
    assign here = rd_q;
    always_ff @(posedge clk_i) begin
      if (step_q[0]) rd_q <= rd;
      known_q <= (here.age != '0) && verdict.found.ip && cfg_i.follow && !clear_q &&
                 (here.tag == tag(verdict.addr_hash, verdict.port_hash));
      apart_q <= (7'(here.pair) >= pairs_in_use_i);
      if (step_q[2]) begin
        if (!cfg_i.steer) begin
          pair_q <= (known_q && !apart_q) ? here.pair : pair_t'(spread);
        end else if (!verdict.rss) begin
          pair_q <= ({1'b0, cfg_i.unclassified} >= pairs_in_use_i) ? '0 :
                    pair_t'(cfg_i.unclassified);
        end else begin
          pair_q <= apart_q ? '0 : here.pair;
        end
      end
    end
    assign settled_o = !visit_q && !learn_q && !table_q && !(tick && any_q);

    logic unused_flow;
    assign unused_flow = ^{flow_i, write_i, cfg_i, time_i};
    `FERRONIC_ASSERT(TableWritesApart, !(write_i.table_we && table_q), clk_i, rst_ni)
  end else begin : g_spread
    always_ff @(posedge clk_i) if (step_q[2]) pair_q <= pair_t'(spread);
    assign settled_o     = 1'b1;
    assign timer_armed_o = 1'b0;
    assign timer_left_o  = '0;
    logic unused_cfg;
    assign unused_cfg = ^{cfg_i, write_i, flow_i, time_i, verdict};
  end
  assign idle_o = (step_q == '0) && !frame_valid_i;

  logic unused;
  assign unused = ^{spread, verdict};

  `FERRONIC_ASSERT_STABLE(FrameStable, frame_valid_o, frame_ready_i || fn_rst_i,
                          {frame_o, frame_q_o}, clk_i, rst_ni)
endmodule
