// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Completion of transmit queues beside virtio's own means: the interrupt of a queue that ran empty,
// max-age and markers, with their registers (TX_EMPTY to TX_OVERTAKEN, TX_EMPTY_CAPS).
//
// A queue is empty when used.idx has been written over everything that the driver posted. After
// each publication vq_avail is asked for avail.idx as it is now (`ask`); the queue is empty if the
// answer (`ans`) equals what was published. Then the hold-off begins, and at its end it is asked
// again: still the same, and the interrupt is sent (`tell`), else TX_OVERTAKEN counts. A post that
// was seen meanwhile leads to a publication, which begins all this anew. With a hold-off of 0 one
// answer is enough. There is no answer while the queue has work at hand; more is published then.
//
// Max-age runs from the oldest entry that no interrupt of the queue has reported, as vq_used says
// when it came there (within 16 cycles, or the time of a publication that was under way); it ends
// with an interrupt. A marker asks for one with the publication of its entry. Interrupts by
// virtio's own means report everything too (`told`): then nobody is told again.
//
// All state of a queue is in RAM. Publications and interrupts are noted in the next cycle, and
// never wait. One machine looks at the queues in turn, at each for 5 cycles, and answers accesses
// and takes answers in between (7 cycles at most). So what is due is seen at most
// 5 * Pairs cycles late, plus those of accesses, and then waits for vq_notify, which serves one
// queue at a time. `timer_left_o` tells how long nothing will be due, if `idle_o`.
//
// Invariants: an interrupt is asked for only while something is unreported; one at a time.
`include "ferronic_assert.svh"
module vq_empty
  import ferronic_pkg::*;
  import ferronic_window_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned NumQueues = 8,
  parameter bit          TimeSkip = 1'b1,   // the timer's outputs are of use
  parameter int unsigned TimeW = FwTxMaxAgeCyclesWidth,  // bits of times; a proof has fewer
  localparam int unsigned Pairs = NumQueues / 2,
  localparam int unsigned PW = (Pairs > 1) ? $clog2(Pairs) : 1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        fn_rst_i,
  input  vq_clear_t   clear_i,
  input  logic [1:0]  clear_area_i,   // all four pass by
  input  logic [23:0] time_i,

  input  reg_req_t    req_i,
  output reg_rsp_t    rsp_o,

  // used.idx of a queue has moved, and the link has taken the write: valid until the cycle in which
  // vq_notify takes it (`pub_ready_i`).
  input  logic        pub_valid_i,
  input  logic        pub_ready_i,
  input  qid_t        pub_q_i,
  input  logic [15:0] pub_idx_i,
  input  logic        pub_marker_i,
  input  logic [ 7:0] pub_age_i,

  output logic        ask_valid_o,
  input  logic        ask_ready_i,
  output qid_t        ask_q_o,
  input  logic        ans_valid_i,    // pulse, at least 9 cycles apart
  input  qid_t        ans_q_i,
  input  logic [15:0] ans_idx_i,

  output logic        tell_valid_o,
  input  logic        tell_ready_i,
  output qid_t        tell_q_o,
  // Pulse: an interrupt of the queue was sent, or could not be sent though asked for here.
  input  logic        told_valid_i,
  input  qid_t        told_q_i,
  input  logic        told_asked_i,
  input  logic        told_sent_i,

  output logic        idle_o,         // nothing to be done but what waits for its time
  output logic        timer_armed_o,
  output logic [23:0] timer_left_o
);
  typedef logic [PW-1:0] pair_t;
  typedef logic [TimeW:0] stamp_t;  // a bit more than settings: the sign of a difference tells
  typedef logic [11:0] idx_t;       // an index is ahead by at most 2,048
  // Words of a row, as in the window.
  localparam logic [2:0] WdEmpty = FwTxEmptyOffset[4:2], WdMaxAge = FwTxMaxAgeOffset[4:2],
                         WdMarker = FwTxMarkerOffset[4:2],
                         WdOvertaken = FwTxOvertakenOffset[4:2];
  // By cause, behind TX_IRQ_EMPTY.
  typedef enum logic [1:0] {CaEmpty, CaMaxAge, CaMarker} cause_e;

  if (NumQueues < 2 || NumQueues > MaxQueues || FwTxEmptyStride != 16'h20 ||
      TimeW < 1 || TimeW > FwTxEmptyHoldoffWidth || FwTxMaxAgeCyclesWidth > FwTxEmptyHoldoffWidth ||
      FwTxIrqEmptyOffset[4:0] != 5'h10 || FwTxOvertakenOffset[4:0] != 5'h1c) begin : g_bad
    $error("%m: NumQueues (%0d), TimeW (%0d), or rows of the window that are not as here",
           NumQueues, TimeW);
  end

  // What is known of a queue.
  typedef enum logic [1:0] {
    PhNone,    // nothing more to find out before the next publication
    PhDoubt,   // it may be empty: to be asked
    PhAsked,
    PhEmpty    // hold-off
  } phase_e;
  typedef struct packed {
    logic   late;    // the hold-off is over
    phase_e phase;
  } state_t;

  typedef enum logic [2:0] {
    StPick, StEmpty, StMaxAge, StDue, StDecide, StBus, StCount
  } st_e;
  st_e    st_q;
  pair_t  p_q, scan_q;

  // ---------------------------------------------------------------- what comes
  // Publications of transmit queues, a cycle later. One that waits while an interrupt of its queue
  // is sent is reported by that.
  typedef struct packed {
    pair_t      p;
    idx_t       idx;
    logic       marker;
    logic       known;
    logic [7:0] age;
  } pub_t;
  logic   pub_valid_q, known_q;
  pub_t   pub_q;
  logic   told_valid_q, told_asked_q, told_sent_q;
  pair_t  told_q;
  wire    told_tx = told_valid_i && told_q_i[0];
  wire    clear   = clear_i.valid && clear_i.q[0];
  wire pair_t clear_p = clear_i.q[PW:1];
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      pub_valid_q  <= 1'b0;
      known_q      <= 1'b0;
      told_valid_q <= 1'b0;
    end else begin
      pub_valid_q  <= pub_valid_i && pub_ready_i && pub_q_i[0];
      known_q      <= pub_valid_i && !pub_ready_i &&
                      (known_q || (told_tx && told_q_i == pub_q_i));
      // A clear of another queue has the RAMs.
      told_valid_q <= told_tx || (told_valid_q && clear);
    end
    pub_q <= '{p: pub_q_i[PW:1], idx: pub_idx_i[11:0], marker: pub_marker_i, known: known_q,
               age: pub_age_i};
    if (told_tx) begin
      told_q       <= told_q_i[PW:1];
      told_asked_q <= told_asked_i;
      told_sent_q  <= told_sent_i;
    end
  end

  // The answer to the last question. One that comes while a question of its queue still waits is to
  // an older one.
  logic  ans_valid_q, ans_pop, ask_valid_q;
  pair_t ans_q, ask_q;
  idx_t  ans_idx_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) ans_valid_q <= 1'b0;
    else if (ans_valid_i) ans_valid_q <= !(ask_valid_q && ask_q == ans_q_i[PW:1]);
    else if (ans_pop) ans_valid_q <= 1'b0;
    if (ans_valid_i) begin
      ans_q     <= ans_q_i[PW:1];
      ans_idx_q <= ans_idx_i[11:0];
    end
  end

  // Accesses come from far.
  reg_req_t    req_q;
  logic        ack_q;
  logic [31:0] rdata_q;
  always_ff @(posedge clk_i) begin
    req_q       <= req_i;
    req_q.valid <= req_i.valid && !ack_q && rst_ni;
  end
  wire pair_t      bus_p   = req_q.addr[5 +: PW];
  wire [2:0]       word    = req_q.addr[4:2];
  wire             in_rows = !req_q.addr[11] && ({1'b0, req_q.addr[10:5]} < 7'(Pairs));
  wire             caps    = (req_q.addr[11:2] == FwTxEmptyCapsOffset[11:2]);
  wire [31:0]      value   = req_q.wdata;
  logic            sound;
  always_comb begin
    unique case (word)
      WdEmpty:  sound = (value[30:23] == '0);
      WdMaxAge: sound = (value[31:23] == '0);
      WdMarker: sound = (value[31:1] == '0);
      default:  sound = 1'b0;
    endcase
  end

  // ---------------------------------------------------------------- state of the queues
  logic   unreported, unreported_pub, marked, markers_on;
  stamp_t now_q, begun;
  idx_t   published;
  state_t s, s_new;
  wire    news    = pub_valid_q && !pub_q.known;
  wire    told    = told_valid_q && !clear;
  // What the machine writes waits for what may not wait.
  wire    hold    = pub_valid_q || clear_i.valid;
  wire    set     = (st_q == StBus) && !hold && req_q.write && (&req_q.be) && in_rows && sound;
  wire    decide  = (st_q == StDecide) && !hold;
  logic   ram_on;   // max-age was on before this write
  wire    turn_on = set && (word == WdMaxAge) && !ram_on;
  always_ff @(posedge clk_i) now_q <= time_i[TimeW:0];

  wire    u_we        = clear || told || news;
  wire pair_t u_waddr = clear ? clear_p : told ? told_q : pub_q.p;
  wire    u_wdata     = !clear && !told;
  prim_lutram #(.Width(1), .Depth(1 << PW)) u_unreported (
    .clk_i, .we_i(u_we), .waddr_i(u_waddr), .wdata_i(u_wdata), .raddr_i(p_q),
    .rdata_o(unreported));
  prim_lutram #(.Width(1), .Depth(1 << PW)) u_unreported_pub (
    .clk_i, .we_i(u_we), .waddr_i(u_waddr), .wdata_i(u_wdata), .raddr_i(pub_q.p),
    .rdata_o(unreported_pub));
  prim_lutram #(.Width(1), .Depth(1 << PW)) u_marked (
    .clk_i, .we_i(clear || told || (news && pub_q.marker && markers_on)), .waddr_i(u_waddr),
    .wdata_i(u_wdata), .raddr_i(p_q), .rdata_o(marked));
  prim_lutram #(.Width(1), .Depth(1 << PW)) u_markers_on (
    .clk_i, .we_i(clear || (set && word == WdMarker)), .waddr_i(clear ? clear_p : p_q),
    .wdata_i(!clear && value[0]), .raddr_i(pub_q.p), .rdata_o(markers_on));
  // When max-age began (upper half), and the hold-off.
  wire    emptied = decide && (s.phase == PhAsked) && (s_new.phase == PhEmpty);
  prim_lutram #(.Width(TimeW + 1), .Depth(2 << PW)) u_begun (
    .clk_i, .we_i((news && !unreported_pub) || turn_on || emptied),
    .waddr_i({!emptied, pub_valid_q ? pub_q.p : p_q}),
    .wdata_i(now_q - stamp_t'({pub_q.age & {8{pub_valid_q}}, 4'd0})),
    .raddr_i({st_q == StMaxAge, p_q}), .rdata_o(begun));
  prim_lutram #(.Width($bits(idx_t)), .Depth(1 << PW)) u_published (
    .clk_i, .we_i(pub_valid_q), .waddr_i(pub_q.p), .wdata_i(pub_q.idx), .raddr_i(p_q),
    .rdata_o(published));

  // Becoming empty begins with a publication, or a write to TX_EMPTY.
  wire    doubt = pub_valid_q || (set && word == WdEmpty);
  pair_t  s_waddr;
  state_t s_wdata;
  always_comb begin
    s_waddr = p_q;
    s_wdata = s_new;
    if (doubt) begin
      s_waddr = pub_valid_q ? pub_q.p : p_q;
      s_wdata = '{late: 1'b0, phase: PhDoubt};
    end
    if (clear) begin
      s_waddr = clear_p;
      s_wdata = '{late: 1'b0, phase: PhNone};
    end
  end
  prim_lutram #(.Width($bits(state_t)), .Depth(1 << PW)) u_state (
    .clk_i, .we_i(decide || doubt || clear), .waddr_i(s_waddr), .wdata_i(s_wdata), .raddr_i(p_q),
    .rdata_o(s));

  // ---------------------------------------------------------------- the rows, and the machine
  logic        tell_valid_q, tell_busy_q, tell_count_q;  // asked for; not done; to be counted
  pair_t       tell_q;
  cause_e      tell_cause_q;
  logic        bus_now, count_now, answered_q;
  logic        ram_we;
  logic [2:0]  raddr_word, waddr_word, count_word_q;
  pair_t       pick_p, raddr_p;
  logic [31:0] ram_rd, ram_wd;

  wire pick  = (st_q == StPick) && !clear_i.valid;
  assign ans_pop   = pick && ans_valid_q;
  assign count_now = pick && !ans_valid_q && tell_count_q;
  assign bus_now   = pick && !ans_valid_q && !tell_count_q && req_q.valid && !ack_q;
  always_comb begin
    if (ans_valid_q)       pick_p = ans_q;
    else if (tell_count_q) pick_p = tell_q;
    else if (bus_now)      pick_p = bus_p;
    else                   pick_p = scan_q;
  end

  // Where the row's words are looked up, one after the other.
  logic overtaken;
  always_comb begin
    raddr_p = (st_q == StPick) ? pick_p : p_q;
    unique case (st_q)
      StPick:   raddr_word = count_now ? {1'b1, tell_cause_q} : bus_now ? word : WdEmpty;
      StEmpty:  raddr_word = WdMaxAge;
      default:  raddr_word = WdOvertaken;
    endcase
  end
  assign ram_on = (ram_rd[TimeW-1:0] != '0);
  wire counted  = (st_q == StCount) && !clear_i.valid;
  wire ram_clear = clear;
  always_comb begin
    ram_we     = ram_clear || set || counted;
    waddr_word = count_word_q;
    ram_wd     = ram_rd + 32'd1;
    if (ram_clear)  waddr_word = {1'b0, clear_area_i};
    else if (set)   waddr_word = word;
    if (ram_clear)  ram_wd = '0;
    else if (set)   ram_wd = value;
  end
  prim_ram_1r1w #(.Width(32), .Depth(8 << PW), .InBlock(1'b1), .ZeroInit(1'b1)) u_rows (
    .clk_i, .we_i(rst_ni && ram_we), .waddr_i({ram_clear ? clear_p : p_q, waddr_word}),
    .wdata_i(ram_wd), .re_i(st_q != StBus && st_q != StCount), .raddr_i({raddr_p, raddr_word}),
    .rdata_o(ram_rd));

  // The two times, one after the other through the same adders.
  stamp_t      at_q;                 // end of the hold-off in StMaxAge, of max-age in StDue
  logic        on_q, now_empty_q;    // TX_EMPTY: enabled, and without hold-off
  logic        aging_q;              // max-age is on, and there is something unreported
  logic        held_q, aged_q;       // the hold-off is over; max-age is
  logic        touched_q;            // an interrupt was sent meanwhile
  wire stamp_t at   = begun + {1'b0, ram_rd[TimeW-1:0]};
  wire stamp_t left = at_q - now_q;
  wire         over = left[TimeW] || (left == '0);

  // ---------------------------------------------------------------- what is done
  wire  may_tell = !tell_busy_q && !told_valid_q && !touched_q;
  wire  may_ask  = !ask_valid_q && !ans_valid_q && !ans_valid_i;
  wire  wanted   = on_q && unreported;
  idx_t at_idx_q;
  wire  same     = (at_idx_q == published);
  logic ask, tell, tell_empty;
  cause_e cause;
  always_comb begin
    s_new      = s;
    ask        = 1'b0;
    tell_empty = 1'b0;
    overtaken  = 1'b0;
    unique case (s.phase)
      PhNone: ;
      PhDoubt, PhEmpty: begin
        if (!wanted) begin
          s_new.phase = PhNone;
        end else if (s.phase == PhDoubt || held_q) begin
          ask         = may_ask;
          s_new.late  = s.late || (s.phase == PhEmpty);
          s_new.phase = may_ask ? PhAsked : PhDoubt;
        end
      end
      default: begin
        if (answered_q) begin
          s_new.phase = PhNone;
          if (!same) overtaken = s.late;
          else if (wanted && !s.late && !now_empty_q) s_new.phase = PhEmpty;
          else if (wanted && may_tell && !marked) tell_empty = 1'b1;
          else if (wanted) s_new.phase = PhDoubt;   // later
        end
      end
    endcase
    tell  = may_tell && (marked || tell_empty || (aged_q && unreported));
    cause = marked ? CaMarker : tell_empty ? CaEmpty : CaMaxAge;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q         <= StPick;
      ack_q        <= 1'b0;
      scan_q       <= '0;
      ask_valid_q  <= 1'b0;
      tell_valid_q <= 1'b0;
      tell_busy_q  <= 1'b0;
      tell_count_q <= 1'b0;
    end else begin
      ack_q <= (st_q == StBus) && !hold;
      unique case (st_q)
        StPick: if (pick) begin
          if (count_now) st_q <= StCount;
          else if (bus_now) st_q <= StBus;
          else st_q <= StEmpty;
        end
        StEmpty:  st_q <= StMaxAge;
        StMaxAge: st_q <= StDue;
        StDue:    st_q <= StDecide;
        StDecide: if (!hold) begin
          st_q <= overtaken ? StCount : StPick;
          if (!answered_q) scan_q <= (scan_q == pair_t'(Pairs - 1)) ? '0 : scan_q + 1'b1;
        end
        StBus:    if (!hold) st_q <= StPick;
        StCount:  if (!clear_i.valid) st_q <= StPick;
        default:  st_q <= StPick;
      endcase

      if (decide && ask) ask_valid_q <= 1'b1;
      else if (ask_ready_i) ask_valid_q <= 1'b0;

      if (count_now) {tell_busy_q, tell_count_q} <= '0;
      if (decide && tell) {tell_valid_q, tell_busy_q} <= '1;
      else if (tell_ready_i) tell_valid_q <= 1'b0;
      if (told && told_asked_q) begin
        if (told_sent_q) tell_count_q <= 1'b1;
        else tell_busy_q <= 1'b0;
      end else if (told && tell_valid_q && told_q == tell_q) begin
        // Somebody was quicker.
        {tell_valid_q, tell_busy_q} <= '0;
      end
      if (fn_rst_i) begin
        ask_valid_q  <= 1'b0;
        tell_valid_q <= 1'b0;
        tell_busy_q  <= 1'b0;
        tell_count_q <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (decide && ask) ask_q <= p_q;
    if (decide && tell) begin
      tell_q       <= p_q;
      tell_cause_q <= cause;
    end
    touched_q <= (st_q != StPick) && (touched_q || (told_valid_q && told_q == p_q));
    unique case (st_q)
      StPick: begin
        p_q          <= pick_p;
        answered_q   <= ans_valid_q;
        at_idx_q     <= ans_idx_q;
        count_word_q <= {1'b1, tell_cause_q};
      end
      StEmpty: begin
        on_q        <= ram_rd[31];
        now_empty_q <= !ram_on;
        at_q        <= at;
      end
      StMaxAge: begin
        held_q  <= over;
        at_q    <= at;
        aging_q <= ram_on && unreported;
      end
      StDue: begin
        aged_q       <= aging_q && over;
        count_word_q <= WdOvertaken;
      end
      default: ;
    endcase
  end

  assign ask_valid_o  = ask_valid_q;
  assign ask_q_o      = qid_t'({ask_q, 1'b1});
  // Not while what was told is taken in: it may be this.
  assign tell_valid_o = tell_valid_q && !told_valid_q;
  assign tell_q_o     = qid_t'({tell_q, 1'b1});

  // ---------------------------------------------------------------- answers to accesses
  always_ff @(posedge clk_i) begin
    if (st_q == StBus) begin
      rdata_q <= '0;
      if (in_rows) rdata_q <= ram_rd;
      if (caps) rdata_q <= FwTxEmptyCapsReset;
    end
  end
  assign rsp_o = '{ack: ack_q, rdata: rdata_q};

  // ---------------------------------------------------------------- idle time
  // A round of looks at all queues in which nothing was done or came tells what is due next.
  wire news_any = pub_valid_q || told_valid_q || ans_valid_q || ans_valid_i || ask_valid_q ||
                  tell_busy_q || set || (st_q == StCount) || clear_i.valid;
  wire calm     = (s_new == s) && (s.phase != PhDoubt) && !marked && !(aged_q && unreported);
  if (TimeSkip) begin : g_timer
    logic   calm_q, settled_q, some_q, found_q;
    stamp_t next_q, due_q;
    wire stamp_t next_left = next_q - now_q;
    wire stamp_t due_left  = due_q - time_i[TimeW:0];
    wire    candidate = ((st_q == StMaxAge) && (s.phase == PhEmpty)) ||
                        ((st_q == StDue) && aging_q);
    wire    ends      = decide && !answered_q && (scan_q == pair_t'(Pairs - 1));
    always_ff @(posedge clk_i) begin
      if (!rst_ni || fn_rst_i || news_any || (decide && !calm)) begin
        calm_q    <= 1'b0;
        settled_q <= 1'b0;
      end else if (ends) begin
        calm_q    <= 1'b1;
        settled_q <= calm_q;
      end
      if (ends) found_q <= 1'b0;
      else if (candidate && !answered_q) found_q <= 1'b1;
      if (candidate && !answered_q &&
          (!found_q || $signed(left) < $signed(next_left))) next_q <= at_q;
      if (ends && calm_q) begin
        some_q <= found_q;
        due_q  <= next_q;
      end
    end
    assign idle_o        = settled_q && !news_any && !req_q.valid;
    assign timer_armed_o = some_q;
    assign timer_left_o  = due_left[TimeW] ? '0 : 24'(due_left);
  end else begin : g_no_timer
    assign idle_o        = 1'b0;
    assign timer_armed_o = 1'b0;
    assign timer_left_o  = '0;
    logic unused_timer;
    assign unused_timer = news_any || calm;
  end

  `FERRONIC_ASSERT(AnswerFits, !(ans_valid_i && ans_valid_q), clk_i, rst_ni)
  `FERRONIC_ASSERT(NeverBoth, !(told_valid_q && pub_valid_q), clk_i, rst_ni)
  `FERRONIC_ASSERT(TellsOfNews, !(decide && tell) || unreported, clk_i, rst_ni)
  `FERRONIC_ASSERT(NoNewsInClear, !clear || !pub_valid_q || fn_rst_i, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(AskStable, ask_valid_o, ask_ready_i || fn_rst_i, ask_q_o, clk_i, rst_ni)

  logic unused;
  assign unused = ^{req_q.addr, req_q.be, clear_i.q, pub_q_i, pub_idx_i[15:12], ans_q_i,
                    ans_idx_i[15:12], told_q_i, time_i};
endmodule
