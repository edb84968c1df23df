// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Available rings: learns how far each driver has posted and fetches the entries in bursts.
//
// Per queue it keeps `seen` (the newest avail.idx known) and `fetched` (entries asked for). An
// event (doorbell, avail.idx read back, room in the prefetch RAM) makes it look at that queue and
// do one thing: read up to JobEntries entries, or, when everything known is fetched, ask again:
// write avail_event, then read avail.idx, in this order, so that a post between the two is never
// lost (virtio 1.2, "Available Buffer Notification Suppression"; bug-log row 5).
//
// With the entries, the head descriptors that they will probably name are read (vq_desc_fetch keeps
// the guess): most drivers use descriptors in turn, and a round trip is saved.
//
// A transmit queue is asked without an event while it has work in hand: consumption is reported,
// the driver need not ring. Only when nothing is in hand is the event written.
//
// vq_empty may ask whether a transmit queue is empty (`ask`): if the queue has nothing in hand,
// avail.idx is read once more, by a read that begins after the question, and `ans` tells what it
// was. There is no answer if there is work, or if another question for the queue came meanwhile.
// What the read finds is taken like what any other finds.
//
// A ring entry is never read before its index is known. An index more than the ring ahead of the
// used index is a protocol error. While much is in hand (RxEnough, TxEnough) it does not ask for
// more; consumption is reported and makes it look again. During a pause doorbells and room are
// taken and noted, but nothing is begun. Latency: 6 cycles from event to request; one event at a
// time, 8 to 10 cycles each.
`include "ferronic_assert.svh"
module vq_avail
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned NumQueues = 8,
  parameter int unsigned RxDepth = 128,
  parameter int unsigned TxDepth = 32,
  parameter int unsigned RxEnough = 96,
  parameter int unsigned TxEnough = 32,
  localparam int unsigned QW = $clog2(NumQueues)
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,
  input  vq_clear_t    clear_i,
  input  vq_cfg_t      cfg_i,
  input  logic         event_idx_i,
  input  logic         run_i,       // DRIVER_OK and nothing broken
  input  logic         pause_i,
  output logic         idle_o,
  output logic         drained_o,   // nothing in flight; what comes during a pause is only noted

  // Doorbells; only those with NOTIFICATION_DATA tell the index.
  input  logic         db_valid_i,
  output logic         db_ready_o,
  input  qid_t         db_q_i,
  input  logic         db_has_idx_i,
  input  logic [15:0]  db_idx_i,

  input  logic         ask_valid_i,
  output logic         ask_ready_o,
  input  qid_t         ask_q_i,
  output logic         ans_valid_o,   // pulse, at least 9 cycles apart
  output qid_t         ans_q_o,
  output logic [15:0]  ans_idx_o,

  // Room was made in a queue's prefetch RAM.
  input  logic         credit_valid_i,
  output logic         credit_ready_o,
  input  qid_t         credit_q_i,

  // Pointers that others own, looked up by queue.
  output qid_t         look_q_o,
  input  vq_ptr_t      commit_i,
  input  logic [15:0]  used_idx_i,

  output logic         rd_valid_o,
  input  logic         rd_ready_i,
  output vq_rd_t       rd_o,
  input  dma_rd_done_t done_i,

  output logic         ram_req_o,
  output logic [8:0]   ram_addr_o,
  input  logic         ram_gnt_i,
  input  logic         ram_valid_i,
  input  logic [63:0]  ram_data_i,

  // avail_event is written by the used-ring writer; ready means the link layer will send it.
  output logic         event_valid_o,
  input  logic         event_ready_i,
  output qid_t         event_q_o,
  output logic [15:0]  event_idx_o,

  output logic         job_valid_o,
  input  logic         job_ready_i,
  output vq_job_t      job_o,
  output vq_guess_t    job_guess_o,
  input  logic         guess_on_i,  // of the queue looked up: descriptor = entry + shift
  input  logic [10:0]  guess_shift_i,
  input  logic         slot_free_i, // the oldest job is finished

  output logic         error_o,
  output qid_t         error_q_o
);
  typedef struct packed {
    logic [15:0] seen;
    logic [15:0] fetched;
    logic        reading;   // a read of avail.idx is under way
    logic        ask;       // a doorbell came whose index is not known
    logic        armed;     // avail_event equals `seen`
    logic        asked;     // vq_empty has a question, and no read has begun since
  } state_t;

  typedef enum logic [3:0] {
    StPick, StRam, StRamWait, StLoad, StCompare, StUpdate, StClip, StDecide, StEntries, StGuess,
    StEvent, StIndex, StStore
  } st_e;
  typedef enum logic [2:0] {EvDoorbell, EvIndex, EvCredit, EvList, EvAsk} ev_e;

  st_e         st_q;
  ev_e         ev_q;
  qid_t        q_q;
  logic [15:0] idx_q;
  logic        idx_err_q, new_idx_q;
  state_t      s_q, s_rd;
  vq_ptr_t     commit_q;
  logic [15:0] used_q;
  ring_t       ring_q, ring_rd;
  logic [ 4:0] count_q;
  logic [ 2:0] slot_q, last_slot_q;
  logic [ 3:0] slots_used_q;
  logic        relist_q;
  logic        some_q, more_q, put_off_q;  // entries to ask for; more than fit now
  logic        guess_q;
  logic [10:0] first_q;      // descriptor guessed for the first entry

  // Reads of avail.idx return in order; their queues wait here.
  logic idxq_wr, idxq_ready, idxq_valid, idxq_pop;
  qid_t idxq_q;
  logic idxq_answers, answers_q;   // to a question of vq_empty
  logic [2:0] idx_tag_q, idx_rtag_q;
  logic [3:0] idxq_level;
  prim_fifo #(.Width(QidW + 1), .Depth(8)) u_idx_queue (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(idxq_wr), .wr_ready_o(idxq_ready), .wr_data_i({s_q.asked, q_q}),
    .rd_valid_o(idxq_valid), .rd_ready_i(idxq_pop), .rd_data_o({idxq_answers, idxq_q}),
    .level_o(idxq_level)
  );
  vq_cookie_t cookie;
  assign cookie = vq_cookie_t'(done_i.cookie);
  logic done_valid, done_pop, done_err, done_addr1, done_wr_ready;
  logic [3:0] done_level;
  prim_fifo #(.Width(2), .Depth(8)) u_idx_done (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(done_i.valid && cookie.client == ClIdx), .wr_ready_o(done_wr_ready),
    .wr_data_i({done_i.err, cookie.addr1}),
    .rd_valid_o(done_valid), .rd_ready_i(done_pop), .rd_data_o({done_err, done_addr1}),
    .level_o(done_level)
  );

  // Queues to look at again.
  logic list_wr, list_ready, list_valid, list_pop;
  qid_t list_q;
  logic [QW:0] list_level;
  prim_fifo #(.Width(QidW), .Depth(NumQueues)) u_list (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(list_wr), .wr_ready_o(list_ready), .wr_data_i(q_q),
    .rd_valid_o(list_valid), .rd_ready_i(list_pop), .rd_data_o(list_q), .level_o(list_level)
  );

  logic   s_we, l_we, listed_rd, listed_q, listed_d;
  state_t s_wdata;
  // Read as an event is picked, put back when it is dealt with.
  logic pick_any;
  qid_t pick_q;
  prim_ram_1r1w #(.Width($bits(state_t)), .Depth(NumQueues), .InBlock(1'b1)) u_state (
    .clk_i,
    .we_i   (s_we || clear_i.valid),
    .waddr_i(clear_i.valid ? clear_i.q[QW-1:0] : q_q[QW-1:0]),
    .wdata_i(clear_i.valid ? '0 : s_wdata),
    .re_i   (pick_any),
    .raddr_i(pick_q[QW-1:0]),
    .rdata_o(s_rd)
  );
  // In the work list? Outlives a reset of the queue alone, as its place in the list does.
  prim_lutram #(.Width(1), .Depth(NumQueues)) u_listed (
    .clk_i,
    .we_i   (l_we || fn_rst_i),
    .waddr_i(fn_rst_i ? clear_i.q[QW-1:0] : q_q[QW-1:0]),
    .wdata_i(listed_d && !fn_rst_i),
    .raddr_i(q_q[QW-1:0]),
    .rdata_o(listed_rd)
  );
  prim_lutram #(.Width($bits(ring_t)), .Depth(NumQueues)) u_ring (
    .clk_i, .we_i(cfg_i.we_ring), .waddr_i(cfg_i.q[QW-1:0]), .wdata_i(cfg_i.ring),
    .raddr_i(q_q[QW-1:0]), .rdata_o(ring_rd)
  );

  assign look_q_o = q_q;

  wire work_list = list_valid && !pause_i;
  wire pick      = (st_q == StPick) && !clear_i.valid;
  wire pick_idx  = pick && done_valid && idxq_valid;
  // Doorbells and credits are taken during a pause too, so that nobody waits for its end.
  wire pick_ask  = pick && !pick_idx && ask_valid_i;
  wire pick_db   = pick && !pick_idx && !pick_ask && db_valid_i;
  wire pick_cred = pick && !pick_idx && !pick_ask && !pick_db && credit_valid_i;
  wire pick_list = pick && !pick_idx && !pick_ask && !pick_db && !pick_cred && work_list;

  assign pick_any = pick_idx || pick_ask || pick_db || pick_cred || pick_list;
  assign pick_q   = pick_idx ? idxq_q : pick_ask ? ask_q_i : pick_db ? db_q_i :
                    pick_cred ? credit_q_i : list_q;

  assign ask_ready_o    = pick_ask;
  assign db_ready_o     = pick_db;
  assign credit_ready_o = pick_cred;
  assign list_pop       = pick_list;
  assign ram_req_o      = (st_q == StRam);
  assign ram_addr_o     = {CtlIdx[11:6], idx_rtag_q};
  assign done_pop       = (st_q == StRamWait) && ram_valid_i;
  assign idxq_pop       = done_pop;

  // Update: a newer index?
  wire [15:0] behind     = s_q.seen - idx_q;
  wire [15:0] from_used  = idx_q - used_q;
  // A doorbell older than what a read has shown is nothing new.
  wire        en         = (ring_q != RingOff);
  wire [15:0] size       = {4'd0, ring_size(ring_q)};
  wire [10:0] mask       = ring_mask(ring_q);
  logic       newer_q, too_far_q;
  always_ff @(posedge clk_i) begin
    newer_q   <= new_idx_q && (behind > size) && en && run_i;
    too_far_q <= from_used > size;
  end

  // How many entries can be read at once? What does not depend on a newer index is worked out while
  // that is taken in, so that deciding is short.
  function automatic logic [4:0] clip(input logic [15:0] v);
    clip = (v >= 16'(JobEntries)) ? 5'(JobEntries) : v[4:0];
  endfunction
  wire [10:0] entry      = s_q.fetched[10:0] & mask;
  wire vq_ptr_t held     = s_q.fetched[$bits(vq_ptr_t)-1:0] - commit_q;
  wire vq_ptr_t depth    = q_q[0] ? vq_ptr_t'(TxDepth) : vq_ptr_t'(RxDepth);
  wire vq_ptr_t space    = depth - held;
  wire [ 4:0] c_space    = clip(16'(space));
  // Entries, or descriptors, from here to the end of the ring.
  function automatic logic [4:0] to_end(input logic [10:0] at);
    to_end = |at[10:4] ? 5'd16 : {1'b0, at[3:0]} + 5'd1;
  endfunction
  wire [ 4:0] c_wrap     = to_end(mask & ~entry);
  wire [10:0] guess_first = (s_q.fetched[10:0] + guess_shift_i) & mask;
  // With so much in hand, asking for more can wait until some is used: that is reported. A frame
  // may need RxEnough buffers, so receive never waits with fewer.
  wire        enough     = held >= (q_q[0] ? vq_ptr_t'(TxEnough) : vq_ptr_t'(RxEnough));
  logic [4:0] limit_q, room_q;   // entries that fit; descriptors up to the end of the table
  logic       full_q, tight_q, enough_q, busy_q, guess_on_q;
  logic [3:0] space_q;           // meaningful if tight_q
  always_ff @(posedge clk_i) begin
    if (st_q == StUpdate) begin
      limit_q    <= (c_space < c_wrap) ? c_space : c_wrap;
      room_q     <= to_end(mask & ~guess_first);
      full_q     <= (space == '0);
      tight_q    <= (space < 8) && (held != '0);
      enough_q   <= enough;
      busy_q     <= q_q[0] && (held != '0);
      guess_on_q <= guess_on_i;
      first_q    <= guess_first;
      space_q    <= space[3:0];
    end
  end

  // Worked out for either index while the choice is made.
  logic [15:0] avail;
  always_ff @(posedge clk_i) begin
    if (st_q == StUpdate) begin
      avail <= (newer_q && !too_far_q) ? idx_q - s_q.fetched : s_q.seen - s_q.fetched;
    end
  end
  wire [ 4:0] c_avail    = clip(avail);
  wire [ 4:0] c_count    = (c_avail < limit_q) ? c_avail : limit_q;
  // A short burst is put off while entries are left to consume: more room will be reported.
  wire        put_off    = full_q || (tight_q && {1'b0, space_q} < c_avail);
  wire slot_ok = (slots_used_q != 4'(JobSlots)) && job_ready_i;

  // The queue looked at was cleared meanwhile: what is known of it is void.
  logic stale_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) stale_q <= 1'b0;
    else if (st_q == StPick) stale_q <= 1'b0;
    else if (clear_i.valid && clear_i.q == q_q) stale_q <= 1'b1;
  end

  always_comb begin
    s_wdata = s_q;
    s_we    = 1'b0;
    l_we    = 1'b0;
    listed_d = listed_q;
    list_wr = 1'b0;
    idxq_wr = 1'b0;
    unique case (st_q)
      StStore: begin
        s_we = !clear_i.valid && !stale_q;
        l_we = !clear_i.valid || stale_q;
        list_wr = s_we && relist_q && !listed_q;
        listed_d = listed_q || list_wr;
      end
      StIndex: idxq_wr = rd_ready_i;
      default: ;
    endcase
  end

  // Reads: entries of a job, or avail.idx.
  assign rd_valid_o = (st_q == StEntries) || (st_q == StGuess) || (st_q == StIndex);
  always_comb begin
    rd_o        = '0;
    rd_o.area   = AreaDriver;
    rd_o.q      = q_q;
    if (st_q == StEntries) begin
      rd_o.offset = 20'd4 + {8'd0, entry, 1'b0};
      rd_o.len    = {3'd0, count_q, 1'b0};
      rd_o.ptr    = CtlAvail | {3'd0, slot_q, 6'd0};
      rd_o.client = ClAvail;
      rd_o.tag    = {1'b0, slot_q};
    end else if (st_q == StGuess) begin
      rd_o.area   = AreaDesc;
      rd_o.offset = {5'd0, first_q, 4'd0};
      rd_o.len    = {count_q, 4'd0};
      rd_o.ptr    = CtlDesc | {1'b0, last_slot_q, 8'd0};
      rd_o.client = ClGuess;
    end else begin
      rd_o.offset = 20'd2;
      rd_o.len    = 9'd2;
      rd_o.ptr    = CtlIdx | {6'd0, idx_tag_q, 3'd0};
      rd_o.client = ClIdx;
      rd_o.tag    = {1'b0, idx_tag_q};
    end
  end
  assign job_valid_o   = (st_q == StEntries) && rd_ready_i;
  assign job_o         = '{q: q_q, count: count_q, slot: slot_q};
  assign job_guess_o   = '{ring: ring_q, entry: entry, guessed: guess_q, guess: first_q};
  assign event_valid_o = (st_q == StEvent);
  assign event_q_o     = q_q;
  assign event_idx_o   = s_q.seen;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q         <= StPick;
      slot_q       <= '0;
      slots_used_q <= '0;
      idx_tag_q    <= '0;
      idx_rtag_q   <= '0;
      error_o      <= 1'b0;
    end else if (fn_rst_i) begin
      st_q         <= StPick;
      slot_q       <= '0;
      slots_used_q <= '0;
      idx_tag_q    <= '0;
      idx_rtag_q   <= '0;
      error_o      <= 1'b0;
    end else begin
      error_o      <= 1'b0;
      slots_used_q <= slots_used_q + 4'(job_valid_o) - 4'(slot_free_i);
      if (job_valid_o) slot_q <= slot_q + 1'b1;
      if (idxq_wr) idx_tag_q <= idx_tag_q + 1'b1;
      if (idxq_pop) idx_rtag_q <= idx_rtag_q + 1'b1;
      unique case (st_q)
        StPick: begin
          if (pick_idx) st_q <= StRam;
          else if (pick_ask || pick_db || pick_cred || pick_list) st_q <= StLoad;
        end
        StRam: if (ram_gnt_i) st_q <= StRamWait;
        StRamWait: if (ram_valid_i) st_q <= StLoad;
        StLoad: st_q <= StCompare;
        StCompare: st_q <= StUpdate;
        StUpdate: begin
          st_q <= StClip;
          if (ev_q == EvIndex && idx_err_q) begin
            error_o <= 1'b1;
            st_q    <= StStore;
          end else if (newer_q && too_far_q) begin
            error_o <= 1'b1;
            st_q    <= StStore;
          end
        end
        StClip: st_q <= StDecide;
        StDecide: begin
          st_q <= StStore;
          if (en && run_i && !pause_i) begin
            if (some_q) begin
              if (!put_off_q && slot_ok) st_q <= StEntries;
            end else if (enough_q) begin
              st_q <= StStore;
            end else if (!s_q.reading && idxq_ready && (s_q.ask || s_q.asked)) begin
              st_q <= StIndex;
            end else if (!s_q.reading && idxq_ready && !s_q.armed && event_idx_i) begin
              if (!busy_q) st_q <= StEvent;
              else if (ev_q == EvCredit) st_q <= StIndex;
            end
          end
        end
        StEntries: if (rd_ready_i) st_q <= guess_q ? StGuess : StStore;
        StGuess: if (rd_ready_i) st_q <= StStore;
        StEvent: if (event_ready_i) st_q <= StIndex;
        StIndex: if (rd_ready_i) st_q <= StStore;
        StStore: if (!clear_i.valid || stale_q) st_q <= StPick;
        default: st_q <= StPick;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (st_q)
      StPick: begin
        relist_q  <= 1'b0;
        q_q       <= pick_q;
        answers_q <= idxq_answers;
        idx_err_q <= done_err;
        idx_q     <= db_idx_i;
        ev_q      <= pick_idx ? EvIndex : pick_ask ? EvAsk : pick_db ? EvDoorbell :
                     pick_cred ? EvCredit : EvList;
        new_idx_q <= pick_idx ? !done_err : (pick_db && db_has_idx_i);
      end
      StRamWait: idx_q <= done_addr1 ? ram_data_i[31:16] : ram_data_i[15:0];
      StLoad: begin
        s_q      <= s_rd;
        listed_q <= listed_rd && (ev_q != EvList);
        commit_q <= commit_i;
        used_q   <= used_idx_i;
        ring_q   <= ring_rd;
      end
      StUpdate: begin
        if (ev_q == EvIndex) s_q.reading <= 1'b0;
        if (ev_q == EvAsk) s_q.asked <= en;
        if (ev_q == EvDoorbell && !new_idx_q && en) s_q.ask <= 1'b1;
        if (newer_q && !too_far_q) begin
          s_q.seen  <= idx_q;
          s_q.armed <= 1'b0;
        end
      end
      StClip: begin
        some_q    <= (avail != '0);
        more_q    <= (avail != {11'd0, c_count});
        put_off_q <= put_off;
        count_q   <= c_count;
        guess_q   <= guess_on_q && ((c_avail <= room_q) || (limit_q <= room_q));
      end
      StDecide: begin
        // With work at hand more will be used, and asked about then. A read under way that answers
        // an older question must not answer this one.
        if ((some_q || busy_q) && !s_q.reading) s_q.asked <= 1'b0;
        if (pause_i) begin
          relist_q <= en && run_i;
        end else if (en && run_i) begin
          if (some_q) begin
            // What cannot start now is looked at again, or when room is reported.
            relist_q <= !put_off_q && (!slot_ok || more_q);
          end else if (!enough_q && !s_q.reading && !idxq_ready &&
                       (s_q.ask || s_q.asked || !s_q.armed)) begin
            relist_q <= 1'b1;
          end
        end
      end
      StEntries: begin
        last_slot_q <= slot_q;
        if (rd_ready_i) begin
          s_q.fetched <= s_q.fetched + {11'd0, count_q};
          // All known entries asked for: look again whether there are more.
          if (!more_q) relist_q <= 1'b1;
        end
      end
      StEvent: s_q.armed <= 1'b1;
      StIndex: begin
        s_q.reading <= 1'b1;
        s_q.ask     <= 1'b0;
        if (rd_ready_i) s_q.asked <= 1'b0;
      end
      default: ;
    endcase
  end

  assign ans_valid_o = (st_q == StUpdate) && (ev_q == EvIndex) && answers_q && !s_q.asked &&
                       !idx_err_q && !stale_q;
  assign ans_q_o     = q_q;
  assign ans_idx_o   = idx_q;

  assign error_q_o = q_q;
  assign drained_o = !idxq_valid && (slots_used_q == '0) &&
                     !(st_q inside {StRam, StRamWait, StEntries, StGuess, StEvent, StIndex});
  assign idle_o    = (st_q == StPick) && drained_o && !db_valid_i && !credit_valid_i &&
                     !ask_valid_i && !work_list;

  `FERRONIC_ASSERT(DoneFits, !(done_i.valid && cookie.client == ClIdx) || done_wr_ready,
                   clk_i, rst_ni)
  `FERRONIC_ASSERT(ListFits, !list_wr || list_ready, clk_i, rst_ni)
  `FERRONIC_ASSERT(SlotsInRange, slots_used_q <= 4'(JobSlots), clk_i, rst_ni)
  `FERRONIC_ASSERT(NeverMoreThanKnown, !(st_q == StEntries) || ({11'd0, count_q} <= avail),
                   clk_i, rst_ni)

  logic unused;
  assign unused = ^{idxq_level, done_level, list_level, cookie.tag, ram_data_i[63:32], clear_i.q,
                    cfg_i, q_q, pick_q};
endmodule
